"""Watching a directory with the asyncio client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

from .aio_streams import AsyncFollower
from .errors import CancelledError
from .file_changes import WatchEvent, watch_event


class AsyncDirectoryWatch:
    """As `DirectoryWatch`; iterating is for one task at a time."""

    def __init__(self, follower: AsyncFollower[Any]) -> None:
        self._follower = follower
        self._closed = False
        self.ended = ""
        """Why there is nothing more to watch, in one sentence; empty as long as there is."""

    @classmethod
    async def _open(cls, follower: AsyncFollower[Any]) -> AsyncDirectoryWatch:
        try:
            await follower.receive()
            return cls(follower)
        except BaseException:
            await follower.close()
            raise

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        """Waits for the next event.

        Raises:
            StopAsyncIteration: It was closed, or the directory was removed, moved away or unmounted: `ended` says so.
            UnavailableError: The connection could not be made again.
            ResourceExhaustedError: Too little is taken for too long, or the kernel's limit of watches is reached.
        """
        while not self._closed and not self.ended:
            try:
                response = await self._follower.receive()
            except CancelledError:
                if self._closed:
                    break
                raise
            if response.WhichOneof("event") == "ended":
                self.ended = response.ended.message or "the directory is gone"
                await self._follower.close(finish=True)
            event = watch_event(response)
            if event is not None:
                return event
        raise StopAsyncIteration

    async def close(self) -> None:
        """Stops watching."""
        self._closed = True
        await self._follower.close(finish=True)

    async def __aenter__(self) -> AsyncDirectoryWatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
