"""Which local files are left out: the patterns of .gitignore files, as git(1) understands them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_SPECIAL = re.compile(r"\\.|/\*\*/|^\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


@dataclass(frozen=True)
class _Rule:
    base: str
    pattern: re.Pattern[str]
    negated: bool
    only_directories: bool


class IgnoreRules:
    """Patterns, of which the last one that matches decides. Paths are relative, with slashes."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._rules: list[_Rule] = []
        self.add("", patterns)

    def add(self, base: str, patterns: Iterable[str]) -> None:
        """Adds the lines of a file that lies in the directory `base`; "" is the beginning."""
        self._rules += [rule for rule in (_rule(base, line) for line in patterns) if rule is not None]

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Says whether it is left out, apart from what its parents say."""
        for rule in reversed(self._rules):
            below = path if not rule.base else path[len(rule.base) + 1 :] if path.startswith(rule.base + "/") else None
            if below and (is_directory or not rule.only_directories) and rule.pattern.fullmatch(below):
                return not rule.negated
        return False


def _rule(base: str, line: str) -> _Rule | None:
    pattern = re.sub(r"(?<!\\)\s+$", "", line.rstrip("\r\n"))
    if not pattern or pattern.startswith("#"):
        return None
    negated = pattern.startswith("!")
    pattern = pattern[negated:]
    only_directories = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    anywhere = "/" not in pattern
    expression = "".join(map(_translated, _SPECIAL.findall(pattern.lstrip("/"))))
    try:
        compiled = re.compile(("(?:.*/)?" if anywhere else "") + expression, re.DOTALL)
    except re.error:  # As git, which lets a malformed pattern match nothing.
        return None
    return _Rule(base, compiled, negated, only_directories)


def _translated(token: str) -> str:
    simple = {"/**/": "/(?:.*/)?", "**/": "(?:.*/)?", "/**": "/.*", "?": "[^/]"}
    if token in simple:
        return simple[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and len(token) > 1:
        inside = token[1:-1].replace("\\", "\\\\")
        return f"(?!/)[{'^' + inside[1:] if inside.startswith('!') else inside}]"
    return re.escape(token[1:] if token.startswith("\\") and len(token) > 1 else token)
