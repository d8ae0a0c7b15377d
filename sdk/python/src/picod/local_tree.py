"""Walks a local directory, without what is to be left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .ignore import IgnoreRules


@dataclass(frozen=True)
class LocalEntry:
    """A file, directory or link."""

    path: str
    relative: str
    """Below the beginning, with slashes."""
    status: os.stat_result
    """Of itself, not of what a link points to."""

    @property
    def is_directory(self) -> bool:
        """It is a directory itself."""
        return stat.S_ISDIR(self.status.st_mode)


def walk(root: str | os.PathLike[str], rules: IgnoreRules, ignore_files: Iterable[str]) -> Iterator[LocalEntry]:
    """Yields what is below in a stable order, each directory before what is in it; the rules learn of the ignore files.

    Raises:
        OSError: A directory cannot be read.
    """
    names = tuple(ignore_files)
    if ".gitignore" in names:
        rules.add("", [".git"])
    pending = [(os.fspath(root), "")]
    while pending:
        directory, relative = pending.pop()
        entries = sorted(os.scandir(directory), key=lambda entry: os.fsencode(entry.name))
        for name in names:
            rules.add(relative, _lines(os.path.join(directory, name)) if any(entry.name == name for entry in entries) else [])
        below = []
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if rules.ignores(path, entry.is_dir(follow_symlinks=False)):
                continue
            found = LocalEntry(entry.path, path, entry.stat(follow_symlinks=False))
            yield found
            if found.is_directory:
                below.append((entry.path, path))
        pending += reversed(below)


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().split("\n")
