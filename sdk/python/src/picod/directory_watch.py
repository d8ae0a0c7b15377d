"""Watching a directory with the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from .errors import CancelledError
from .file_changes import WatchEvent, watch_event
from .streams import Follower


class DirectoryWatch:
    """What changes in a directory, from `PicoDClient.watch` on, until it is closed or the directory is gone.

    When the connection breaks it is made again as the client's `retry` says; what happened meanwhile is not known, which a
    `ChangesLost` says. Iterating is for one thread at a time.
    """

    def __init__(self, follower: Follower[Any]) -> None:
        self._follower = follower
        self._closed = False
        self.ended = ""
        """Why there is nothing more to watch, in one sentence; empty as long as there is."""

    @classmethod
    def _open(cls, follower: Follower[Any]) -> DirectoryWatch:
        try:
            follower.receive()
            return cls(follower)
        except BaseException:
            follower.close()
            raise

    def __iter__(self) -> Iterator[WatchEvent]:
        return self

    def __next__(self) -> WatchEvent:
        """Waits for the next event.

        Raises:
            StopIteration: It was closed, or the directory was removed, moved away or unmounted: `ended` says so.
            UnavailableError: The connection could not be made again.
            ResourceExhaustedError: Too little is taken for too long, or the kernel's limit of watches is reached.
        """
        while not self._closed and not self.ended:
            try:
                response = self._follower.receive()
            except CancelledError:
                if self._closed:
                    break
                raise
            if response.WhichOneof("event") == "ended":
                self.ended = response.ended.message or "the directory is gone"
                self._follower.close(finish=True)
            event = watch_event(response)
            if event is not None:
                return event
        raise StopIteration

    def close(self) -> None:
        """Stops watching."""
        self._closed = True
        self._follower.close(finish=True)

    def __enter__(self) -> DirectoryWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
