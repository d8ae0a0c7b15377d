"""Server streams of the blocking client that notice silence, and that go on over a new connection."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import grpc

from .errors import CancelledError, DeadlineExceededError, UnavailableError, rpc_errors
from .retry import RetryPolicy

_M = TypeVar("_M")

_IDLE_SECONDS = 10.0


class Watchdog:
    """Cancels calls on which nothing arrives in time. Has one thread, while there are such calls and for a little longer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[Stream[Any], float] = {}
        self._running = False
        self._next_look = 0.0

    @contextlib.contextmanager
    def watching(self, stream: Stream[Any], limit_seconds: float) -> Iterator[None]:
        """Cancels the stream unless the context is left in time."""
        deadline = time.monotonic() + limit_seconds
        with self._changed:
            self._deadlines[stream] = deadline
            if not self._running:
                self._running = True
                threading.Thread(target=self._watch, name="picod-watchdog", daemon=True).start()
            elif deadline < self._next_look:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadlines.pop(stream, None)

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for stream in [stream for stream, deadline in self._deadlines.items() if deadline <= now]:
                    del self._deadlines[stream]
                    stream.fall_silent()
                self._next_look = min(self._deadlines.values(), default=now + _IDLE_SECONDS)
                if not self._changed.wait(self._next_look - now) and not self._deadlines:
                    self._running = False
                    return


class Stream(Generic[_M]):
    """The messages of one call."""

    def __init__(self, call: Any, watchdog: Watchdog, channel: grpc.Channel | None) -> None:  # noqa: ANN401 (untyped stubs)
        self._call = call
        self._watchdog = watchdog
        self._channel = channel
        self.silent = False
        """It was given up because nothing arrived."""

    def receive(self, limit_seconds: float | None) -> _M:
        """Waits for the next message; counts only while waiting, so that a slow reader is not taken for silence.

        Raises:
            UnavailableError: Nothing arrived for so long, or the stream ended, which only its reader may decide.
            PicoDError: The call failed.
        """
        watching = self._watchdog.watching(self, limit_seconds) if limit_seconds is not None else contextlib.nullcontext()
        try:
            with watching, rpc_errors():
                message: _M = next(self._call)
                return message
        except StopIteration:
            raise UnavailableError("the stream ended early") from None
        except Exception:
            if self.silent:
                raise UnavailableError(f"nothing arrived for {limit_seconds} s") from None
            raise

    def fall_silent(self) -> None:
        """Ends the call from another thread."""
        self.silent = True
        self._call.cancel()

    def close(self) -> None:
        """Ends the call, and its connection when it has one of its own."""
        self._call.cancel()
        if self._channel is not None:
            self._channel.close()


class Follower(Generic[_M]):
    """The messages of a stream that is opened again, where its reader is, whenever its connection breaks.

    Args:
        open_stream: Opens it at the place where the reader is; on a connection of its own when asked to, because the shared
            one has fallen silent. Is given the seconds that are left until the deadline.
        silence_seconds: Within which something arrives on a connection that works.
        retry: How often it is opened again without any message but the first one, which every stream has.
        deadline: Of time.monotonic(); None for none.
        stream: One that is open, whose first message was received.
    """

    def __init__(
        self,
        open_stream: Callable[[bool, float | None], Stream[_M]],
        silence_seconds: float,
        retry: RetryPolicy,
        deadline: float | None = None,
        stream: Stream[_M] | None = None,
    ) -> None:
        self._open_stream = open_stream
        self._silence_seconds = silence_seconds
        self._retry = retry
        self._deadline = deadline
        self._stream = stream
        self._begun = stream is not None
        self._delays = retry.delays_seconds()
        # Closing may come from another thread, also while the stream is being opened.
        self._changing = threading.Lock()
        self._closes = 0
        self._finished = False
        self.opened = 0
        """How often it was opened."""

    def receive(self) -> _M:
        """Waits for the next message.

        Raises:
            UnavailableError: The attempts are used up.
            DeadlineExceededError: The deadline has passed.
            CancelledError: It was closed meanwhile.
            PicoDError: The call failed otherwise.
        """
        own_connection = False
        closes = self._closes
        while True:
            try:
                stream = self._stream or self._open(own_connection, closes)
                message = stream.receive(self._silence_seconds)
            except UnavailableError:
                own_connection = self._stream is not None and self._stream.silent
                self._drop()
                delay_seconds = next(self._delays, None)
                if delay_seconds is None:
                    self._delays = self._retry.delays_seconds()
                    raise
                time.sleep(min(delay_seconds, self._remaining_seconds() or delay_seconds))
            except BaseException:
                # Whether a message was taken is not known after an interrupt: the next stream begins where the reader is.
                self._drop()
                raise
            else:
                if self._begun:
                    self._delays = self._retry.delays_seconds()
                self._begun = True
                return message

    def close(self, finish: bool = False) -> None:
        """Ends the stream; receiving opens it again, unless this is the finish."""
        with self._changing:
            self._closes += 1
            self._finished = self._finished or finish
        self._drop()

    def _drop(self) -> None:
        with self._changing:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _open(self, own_connection: bool, closes: int) -> Stream[_M]:
        stream = self._open_stream(own_connection, self._remaining_seconds())
        with self._changing:
            if self._closes == closes and not self._finished:
                self._begun = False
                self.opened += 1
                self._stream = stream
                return stream
        stream.close()
        raise CancelledError("the stream was closed")

    def _remaining_seconds(self) -> float | None:
        if self._deadline is None:
            return None
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError("the time is up")
        return remaining
