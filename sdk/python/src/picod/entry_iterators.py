"""Entries and matches of the blocking client, which come while they are taken."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .entries import FindSummary, SearchMatch, SearchSummary, UnreadableEntry
from .entry_streams import Answer, Finding, Listing, Searching
from .errors import UnavailableError, rpc_errors
from .results import EntryInfo

if TYPE_CHECKING:
    from .files import FileMethods

_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="_Items[Any]")


class _Items(Generic[_T]):
    """What an answer gives, for one thread at a time. Nothing is asked for before the first is taken; `close` stops early."""

    def __init__(self, client: FileMethods, method: str, request: object, answer: Answer[_T]) -> None:
        self._client = client
        self._method = method
        self._request = request
        self._answer = answer
        self._call: Any = None
        self._items: deque[_T] = deque()
        self._finished = False
        self._delays = client._retry.delays_seconds()

    def __iter__(self) -> Iterator[_T]:
        return self

    def __next__(self) -> _T:
        while not self._items:
            if self._finished:
                raise StopIteration
            try:
                self._receive()
            except UnavailableError:
                self._drop()
                delay_seconds = next(self._delays, None) if self._answer.resumable else None
                if delay_seconds is None:
                    self._finished = True
                    raise
                time.sleep(delay_seconds)
            except BaseException:
                self.close()
                raise
        return self._items.popleft()

    def close(self) -> None:
        """Stops; nothing more comes."""
        self._finished = True
        self._items.clear()
        self._drop()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self._drop()

    def _receive(self) -> None:
        if self._call is None:
            self._call = self._client._file_stream(self._method, self._request)
        with rpc_errors():
            response = next(self._call, None)
        if response is None:
            self._finished = True
            return
        self._items.extend(self._answer.accept(response))
        if self._items:
            self._delays = self._client._retry.delays_seconds()

    def _drop(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.cancel()


class DirectoryEntries(_Items[EntryInfo]):
    """The entries of a directory, from `PicoDClient.list_directory`."""

    _answer: Listing

    def __init__(self, client: FileMethods, method: str, request: object) -> None:
        super().__init__(client, method, request, Listing())

    @property
    def unreadable(self) -> tuple[UnreadableEntry, ...]:
        """Directories below that could not be read; all of them once the iteration has ended."""
        return self._answer.unreadable


class FoundEntries(_Items[EntryInfo]):
    """What `PicoDClient.find` found."""

    _answer: Finding

    def __init__(self, client: FileMethods, method: str, request: object) -> None:
        super().__init__(client, method, request, Finding())

    @property
    def summary(self) -> FindSummary | None:
        """The totals; None until the iteration has ended."""
        return self._answer.summary


class SearchMatches(_Items[SearchMatch]):
    """What `PicoDClient.search` found."""

    _answer: Searching

    def __init__(self, client: FileMethods, method: str, request: object) -> None:
        super().__init__(client, method, request, Searching())

    @property
    def summary(self) -> SearchSummary | None:
        """The totals; None until the iteration has ended."""
        return self._answer.summary
