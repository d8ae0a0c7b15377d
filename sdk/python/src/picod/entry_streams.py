"""Makes entries, and what else an answer says, of the messages of ListDirectory, Find and Search.

Each of them can be asked again after a broken connection, because it comes in a stable order or has given nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from .entries import (
    FindSummary,
    SearchMatch,
    SearchSummary,
    UnreadableEntry,
    find_summary,
    search_match,
    search_summary,
    unreadable_entries,
)
from .names import path_to_bytes
from .results import EntryInfo, entry_info
from .v1 import filesystem_pb2

_T = TypeVar("_T")


class Answer(Generic[_T]):
    """What has come of one answer, which may be asked for again."""

    def accept(self, response: object) -> Iterator[_T]:
        """Yields what is new in a message."""
        raise NotImplementedError

    @property
    def resumable(self) -> bool:
        """It can be asked for again without giving anything twice."""
        return True


class _Ordered:
    """Leaves out what came before: entries are in the order of the bytes of their names, directories before what is in them."""

    def __init__(self) -> None:
        self._last: list[bytes] | None = None

    def new(self, entries: Iterable[filesystem_pb2.EntryInfo]) -> Iterator[EntryInfo]:
        for entry in entries:
            place = path_to_bytes(entry.path).split(b"/")
            if self._last is None or place > self._last:
                self._last = place
                yield entry_info(entry)


class Listing(Answer[EntryInfo]):
    """The entries of ListDirectory."""

    def __init__(self) -> None:
        self._ordered = _Ordered()
        self._unreadable: dict[str, UnreadableEntry] = {}

    def accept(self, response: object) -> Iterator[EntryInfo]:
        """Yields the entries of a message that are new."""
        assert isinstance(response, filesystem_pb2.ListDirectoryResponse)  # noqa: S101
        self._unreadable.update({entry.path: entry for entry in unreadable_entries(response.unreadable)})
        yield from self._ordered.new(response.entries)

    @property
    def unreadable(self) -> tuple[UnreadableEntry, ...]:
        """Directories that could not be read, as far as is known."""
        return tuple(self._unreadable.values())


class Finding(Answer[EntryInfo]):
    """The entries of Find, and its summary."""

    def __init__(self) -> None:
        self._ordered = _Ordered()
        self.summary: FindSummary | None = None

    def accept(self, response: object) -> Iterator[EntryInfo]:
        """Yields the entries of a message that are new."""
        assert isinstance(response, filesystem_pb2.FindResponse)  # noqa: S101
        if response.HasField("summary"):
            self.summary = find_summary(response.summary)
        yield from self._ordered.new(response.entries)


class Searching(Answer[SearchMatch]):
    """The matches of Search, and its summary."""

    def __init__(self) -> None:
        self._begun = False
        self.summary: SearchSummary | None = None

    @property
    def resumable(self) -> bool:
        """Nothing was given yet: files may have changed, so that the same lines would not come again."""
        return not self._begun

    def accept(self, response: object) -> Iterator[SearchMatch]:
        """Yields the match of a message."""
        assert isinstance(response, filesystem_pb2.SearchResponse)  # noqa: S101
        if response.HasField("summary"):
            self.summary = search_summary(response.summary)
        else:
            self._begun = True
            yield search_match(response.match)
