"""Server streams of the asyncio client that notice silence, and that go on over a new connection."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import grpc

from .errors import CancelledError, DeadlineExceededError, UnavailableError, rpc_errors
from .retry import RetryPolicy

_M = TypeVar("_M")


class AsyncStream(Generic[_M]):
    """The messages of one call."""

    def __init__(self, call: Any, channel: grpc.aio.Channel | None) -> None:  # noqa: ANN401 (untyped stubs)
        self._call = call
        self._channel = channel
        self._closed = False
        self.silent = False
        """It was given up because nothing arrived."""

    async def receive(self, limit_seconds: float | None) -> _M:
        """Waits for the next message; counts only while waiting, so that a slow reader is not taken for silence.

        Raises:
            UnavailableError: Nothing arrived for so long, or the stream ended, which only its reader may decide.
            PicoDError: The call failed.
        """
        loop = asyncio.get_running_loop()
        timer = None if limit_seconds is None else loop.call_later(limit_seconds, self._fall_silent)
        try:
            with rpc_errors():
                message: _M = await self._call.read()
        except asyncio.CancelledError:
            # What a read of a cancelled call raises; a cancelled task raises the same and must go on doing so.
            if _is_cancelling() or not (self.silent or self._closed):
                raise
            if self._closed:
                raise CancelledError("the stream was closed") from None
            raise UnavailableError(f"nothing arrived for {limit_seconds} s") from None
        finally:
            if timer is not None:
                timer.cancel()
        if message is grpc.aio.EOF:
            raise UnavailableError("the stream ended early")
        return message

    def _fall_silent(self) -> None:
        self.silent = True
        self._call.cancel()

    async def close(self) -> None:
        """Ends the call, and its connection when it has one of its own."""
        self._closed = True
        self._call.cancel()
        if self._channel is not None:
            await self._channel.close()


class AsyncFollower(Generic[_M]):
    """As `streams.Follower`."""

    def __init__(
        self,
        open_stream: Callable[[bool, float | None], AsyncStream[_M]],
        silence_seconds: float,
        retry: RetryPolicy,
        deadline: float | None = None,
        stream: AsyncStream[_M] | None = None,
    ) -> None:
        self._open_stream = open_stream
        self._silence_seconds = silence_seconds
        self._retry = retry
        self._deadline = deadline
        self._stream = stream
        self._begun = stream is not None
        self._delays = retry.delays_seconds()
        self._closes = 0
        self._finished = False
        self.opened = 0
        """How often it was opened."""

    async def receive(self) -> _M:
        """As `streams.Follower.receive`."""
        own_connection = False
        closes = self._closes
        while True:
            try:
                stream = self._stream or self._open(own_connection, closes)
                message = await stream.receive(self._silence_seconds)
            except UnavailableError:
                own_connection = self._stream is not None and self._stream.silent
                await self._drop()
                delay_seconds = next(self._delays, None)
                if delay_seconds is None:
                    self._delays = self._retry.delays_seconds()
                    raise
                await asyncio.sleep(min(delay_seconds, self._remaining_seconds() or delay_seconds))
            except BaseException:
                # Whether a message was taken is not known after a cancellation: the next stream begins where the reader is.
                await self._drop()
                raise
            else:
                if self._begun:
                    self._delays = self._retry.delays_seconds()
                self._begun = True
                return message

    async def close(self, finish: bool = False) -> None:
        """As `streams.Follower.close`."""
        self._closes += 1
        self._finished = self._finished or finish
        await self._drop()

    async def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()

    def _open(self, own_connection: bool, closes: int) -> AsyncStream[_M]:
        if self._closes != closes or self._finished:
            raise CancelledError("the stream was closed")
        stream = self._open_stream(own_connection, self._remaining_seconds())
        self._begun = False
        self.opened += 1
        self._stream = stream
        return stream

    def _remaining_seconds(self) -> float | None:
        if self._deadline is None:
            return None
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError("the time is up")
        return remaining


def _is_cancelling() -> bool:
    with contextlib.suppress(AttributeError):  # Python before 3.11 cannot tell.
        return bool(asyncio.current_task().cancelling())  # type: ignore[union-attr]
    return False
