"""What uploads and downloads of both clients are made of: blocking calls that can all be ended at once, and be repeated.

Local files are read and written by threads anyway, so the asyncio client runs the same transfers in a thread of their own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from .connection import Metadata
from .errors import CancelledError, DeadlineExceededError, PicoDError, UnavailableError, rpc_errors
from .retry import RetryPolicy
from .v1 import filesystem_pb2_grpc

LAST_CALL_SECONDS = 3.0
"""Time for a call that undoes what failed: enough to connect again once."""
LAST_CALL_PAUSE_SECONDS = 0.05

_A = TypeVar("_A")


class Transfer:
    """The calls of one transfer.

    Args:
        files: Blocking stub.
        metadata: Of every call.
        timeout: Seconds for all of it; None for no limit.
        retry: How often a call is repeated without any progress.
    """

    def __init__(
        self,
        files: filesystem_pb2_grpc.FilesystemServiceStub,
        metadata: Metadata,
        timeout: float | None,
        retry: RetryPolicy,
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.retry = retry
        self._calls: set[Any] = set()
        self._changing = threading.Lock()
        self._ended = threading.Event()

    def cancel(self) -> None:
        """Ends all calls, from another thread; there will be no more."""
        with self._changing:
            self._ended.set()
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    @property
    def cancelled(self) -> bool:
        """Nothing more may be done."""
        return self._ended.is_set()

    @contextlib.contextmanager
    def calling(self, method: str, request: object) -> Iterator[Any]:
        """Opens a call, which ends with the context. Unary answers are futures: those can be cancelled by an interrupt."""
        stub = getattr(self._files, method)
        with rpc_errors():
            with self._changing:
                if self.cancelled:
                    raise CancelledError("the transfer was cancelled")
                open_call = stub if method in ("ReadFile", "ReadArchive", "ListDirectory") else stub.future
                call = open_call(request, timeout=self._remaining_seconds(), metadata=self._metadata)
                self._calls.add(call)
            try:
                yield call
            finally:
                call.cancel()
                with self._changing:
                    self._calls.discard(call)

    def unary(self, method: str, request: object) -> Any:  # noqa: ANN401 (untyped stubs)
        """Makes a call and returns its answer."""
        with self.calling(method, request) as call:
            return call.result()

    def last_call(self, method: str, request: object) -> None:
        """Makes a call also when it is cancelled, and waits for a new connection when the last one has just broken.

        It may be made twice: a connection that has broken without anybody noticing takes a call with it.
        """
        call = getattr(self._files, method)
        deadline = time.monotonic() + LAST_CALL_SECONDS
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                with rpc_errors():
                    call.future(request, timeout=remaining, wait_for_ready=True, metadata=self._metadata).result()
            except UnavailableError:
                time.sleep(LAST_CALL_PAUSE_SECONDS)
            else:
                return
        raise UnavailableError(f"{method} has found no connection")

    def pause(self, seconds: float) -> None:
        """Waits, unless it is cancelled."""
        self._ended.wait(seconds)

    def in_parallel(self, act: Callable[[_A], None], arguments: Sequence[_A], threads: int) -> None:
        """Acts on each argument, on so many at a time. The first failure ends the rest, and is raised.

        Only the calls of the rest are ended: the transfer may go on.
        """
        if threads <= 1 or len(arguments) <= 1:
            for argument in arguments:
                act(argument)
            return
        with ThreadPoolExecutor(threads, thread_name_prefix="picod-transfer") as executor:
            futures = [executor.submit(act, argument) for argument in arguments]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                failed = [future for future in futures if future.done() and future.exception() is not None]
                for future in futures:
                    future.cancel()
                if failed or not all(future.done() for future in futures):
                    with self._changing:
                        calls = list(self._calls)
                    for call in calls:
                        call.cancel()
            if failed:
                raise failed[0].exception() or AssertionError

    def _remaining_seconds(self) -> float | None:
        if self._deadline is None:
            return None
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError("the time of the transfer is up")
        return remaining


class Attempts:
    """How often something is tried again, counted anew after each progress."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer = transfer
        self.progressed()

    def progressed(self) -> None:
        """Forgets the attempts before."""
        self._delays = self._transfer.retry.delays_seconds()

    def wait_after(self, error: PicoDError, *reasons: str) -> None:
        """Waits for the next attempt.

        Raises:
            PicoDError: The error itself: it is not one of a broken connection, nor has it one of the reasons; or the attempts are
                used up.
        """
        delay_seconds = next(self._delays, None) if isinstance(error, UnavailableError) or error.reason in reasons else None
        if delay_seconds is None or self._transfer.cancelled:
            raise error
        self._transfer.pause(delay_seconds)
