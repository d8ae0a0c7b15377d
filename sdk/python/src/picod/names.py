"""Names that are not UTF-8: file names are bytes, but paths here are text, as on the wire.

A byte that is not UTF-8 is one character of U+EF80 to U+EFFF, the byte plus 0xEF00; characters of that range which a name really
holds appear as their bytes. So every path that was answered can be sent back.
"""

from __future__ import annotations

import re

_ESCAPE_BASE = 0xEF00
# What "surrogateescape" makes of a byte is that byte plus this.
_SURROGATE_BASE = 0xDC00
_ESCAPED = re.compile("[\uef80-\uefff]")
_SURROGATES = {_SURROGATE_BASE + byte: _ESCAPE_BASE + byte for byte in range(0x80, 0x100)}
_ESCAPES = {escaped: surrogate for surrogate, escaped in _SURROGATES.items()}


def path_from_bytes(raw: bytes) -> str:
    """Returns the text that stands for a path of bytes, for example of `os.fsencode`."""
    text = raw.decode("utf-8", "surrogateescape").translate(_SURROGATES)
    if len(text.encode("utf-8")) == len(raw) and not _ESCAPED.search(text):
        return text
    # Again, with the characters of the range that the path really holds taken apart.
    text = _ESCAPED.sub(_apart, raw.decode("utf-8", "surrogateescape"))
    return text.translate(_SURROGATES)


def path_to_bytes(path: str) -> bytes:
    """Returns the bytes that a path of the sandbox stands for; `os.fsdecode` makes a local path of them."""
    return path.translate(_ESCAPES).encode("utf-8", "surrogateescape")


def _apart(match: re.Match[str]) -> str:
    return "".join(chr(_ESCAPE_BASE + byte) for byte in match[0].encode("utf-8"))
