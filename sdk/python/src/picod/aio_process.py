"""Long-lived processes, as the asyncio client sees them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc

from .acknowledgements import Acknowledgements
from .aio_streams import AsyncFollower, AsyncStream
from .errors import CancelledError, DeadlineExceededError, NotFoundError, PicoDError, ResourceExhaustedError
from .output import OutputCursor, OutputDecoder, ProcessOutput, StreamName
from .process_input import input_pieces, input_request, is_queue_full, queue_delays_seconds
from .processes import OutputOffsets, ProcessEvent, ProcessInfo, ProcessResult, StopResult, process_result
from .requests import END_SECONDS, attach_request, pty_size
from .v1 import process_pb2
from .watch_state import WatchState

if TYPE_CHECKING:
    from .aio import AsyncPicoDClient


class AsyncProcess:
    """As `Process`, with coroutines: `async for` iterates over its output, `async with` stops or disconnects.

    One task at a time may iterate. Cancelling a task that waits for output loses nothing: the next one goes on there.
    """

    def __init__(
        self,
        client: AsyncPicoDClient,
        info: ProcessInfo,
        offsets: OutputOffsets,
        *,
        follower_id: str,
        stop_on_exit: bool,
        stream: AsyncStream[Any] | None = None,
    ) -> None:
        self._client = client
        self._info = info
        self._follower_id = follower_id
        self._stop_on_exit = stop_on_exit
        self._result: ProcessResult | None = None
        self._output = OutputCursor(offsets)
        self._decoder = OutputDecoder()
        self._iterating = asyncio.Lock()
        self._acknowledgements = Acknowledgements(info.id, follower_id, offsets)
        self._writing = asyncio.Lock()
        self._acknowledging: asyncio.Task[None] | None = None
        self._follower = client._follow(self._attach, stream=stream)

    @property
    def id(self) -> str:
        """What `attach` finds it by."""
        return self._info.id

    @property
    def pid(self) -> int:
        """Of its leader in the sandbox; 0 when it could not be started."""
        return self._info.pid

    @property
    def tag(self) -> str:
        """Its tag when this object last asked for it (`info`, `update`); empty for none."""
        return self._info.tag

    @property
    def result(self) -> ProcessResult | None:
        """How it went, once iterating or `wait` has got to its end; else None."""
        return self._result

    @property
    def offsets(self) -> OutputOffsets:
        """Where iterating goes on; `attach` with these `from_offsets`, here or elsewhere, continues there."""
        return self._output.offsets

    def __repr__(self) -> str:
        return f"<AsyncProcess {self.id} pid={self.pid} tag={self.tag!r}>"

    def __aiter__(self) -> AsyncIterator[ProcessOutput]:
        return self

    async def __anext__(self) -> ProcessOutput:
        """Waits for more output.

        Raises:
            StopAsyncIteration: It has ended, and all output was delivered; `result` says how.
            UnavailableError: The connection could not be made again. Iterating may be tried again, nothing is lost by it.
            OutOfRangeError: The offsets given to `attach` lie beyond what was written.
            RuntimeError: Another task is iterating.
        """
        if self._iterating.locked():
            raise RuntimeError(f"another task is iterating over {self!r}: make a reader of its own with attach")
        async with self._iterating:
            try:
                # Who asks for more has taken what was there.
                self._acknowledge(asked=False)
                while self._output.result is None:
                    event = (await self._follower.receive()).event
                    output = self._output.accept(event)
                    if output is not None:
                        return output
                    if event.WhichOneof("event") == "keepalive":
                        self._acknowledge(asked=True)
                self._result = self._output.result
            except PicoDError:
                await self._follower.close()
                raise
            await self._follower.close()
            raise StopAsyncIteration

    async def text(self, stream: StreamName | None = None) -> AsyncIterator[str]:
        """Iterates as the process itself does, but yields text: UTF-8, in which what is malformed becomes U+FFFD.

        Args:
            stream: "stdout", "stderr" or "pty"; the others are dropped. Default: all, as they arrive.

        Raises:
            DataLossError: Part of the output was trimmed before it was read (`reason` is OUTPUT_TRIMMED). Another iteration goes
                on after the gap.
        """
        async for output in self:
            if stream in (None, output.stream) and (text := self._decoder.decode(output)):
                yield text
        if text := self._decoder.finish(stream):
            yield text

    async def wait(self, timeout: float | None = None) -> ProcessResult:
        """Waits for its end and returns how it went; a program that fails is a result, not an exception.

        Reads no output. A process with `backpressure` waits for its reader, and so would this: iterate to the end first.

        Args:
            timeout: Seconds to wait at most, after which it runs on; None for no limit.

        Raises:
            DeadlineExceededError: It has not ended in time (also a TimeoutError).
            UnavailableError: The connection could not be made again.
        """
        if self._result is None:
            self._result = await self._wait(timeout)
        return self._result

    async def _wait(self, timeout: float | None) -> ProcessResult:
        deadline = None if timeout is None else time.monotonic() + timeout
        follower = self._client._follow(self._attach_at_end, deadline)
        try:
            while True:
                event = (await follower.receive()).event
                if event.WhichOneof("event") == "ended":
                    return process_result(event.ended)
        except DeadlineExceededError:
            raise DeadlineExceededError(f"process {self.id} has not ended within {timeout} s") from None
        finally:
            await follower.close()

    async def write(self, data: str | bytes) -> None:
        """Writes to its standard input, or types on its terminal; waits while it does not read what was written before.

        A write whose answer was lost is repeated as `retry` says, and arrives once, whoever else writes meanwhile. Pieces of up
        to 256 KiB stay whole.

        Args:
            data: Text goes as UTF-8. A terminal takes control characters, such as chr(3) for Ctrl-C.

        Raises:
            FailedPreconditionError: It has ended, has no standard input (`stdin=True` or `pty`), or that is closed.
            UnavailableError: The connection could not be made again: the input may have arrived. `DaemonRestartedError` when
                the daemon was restarted: the process went with it.
        """
        async with self._writing:
            for piece in input_pieces(data):
                await self._write(piece)

    async def _write(self, piece: bytes) -> None:
        request, queue_delays = input_request(self.id, piece), queue_delays_seconds()
        while True:
            try:
                await self._client._once(lambda metadata: self._client._process_call("SendInput", request, metadata=metadata))
                return
            except ResourceExhaustedError as error:
                if not is_queue_full(error):
                    raise
            await asyncio.sleep(next(queue_delays))

    async def close_input(self) -> None:
        """Ends its standard input after what was written; a terminal gets its end-of-file character. Repeated as `retry` says.

        Raises:
            FailedPreconditionError: It was started without standard input.
        """
        request = process_pb2.CloseInputRequest(process=self._selector)
        await self._client._repeated(lambda: self._client._process_call("CloseInput", request))

    async def resize(self, cols: int, rows: int) -> None:
        """Changes the size of its terminal. Repeated as `retry` says.

        Raises:
            InvalidArgumentError: A size is not 1 to 65535.
            FailedPreconditionError: It has no terminal, or has ended.
        """
        request = process_pb2.ResizePtyRequest(process=self._selector, size=pty_size(cols, rows))
        await self._client._repeated(lambda: self._client._process_call("ResizePty", request))

    async def signal(self, signal: str | int, *, leader_only: bool = False) -> None:
        """As `AsyncPicoDClient.send_signal`."""
        await self._client.send_signal(signal, self.id, leader_only=leader_only)

    async def stop(self, grace: float | None = None) -> StopResult:
        """As `AsyncPicoDClient.stop_process`."""
        return await self._client.stop_process(self.id, grace=grace)

    async def info(self) -> ProcessInfo:
        """Asks the daemon what it is like now. Repeated as `retry` says."""
        self._info = await self._client.get_process(self.id)
        return self._info

    async def update(self, *, tag: str | None = None, label: str | None = None) -> ProcessInfo:
        """Changes tag and label; an empty one is removed, None keeps it. Repeated as `retry` says.

        Raises:
            AlreadyExistsError: Another live process has the tag.
        """
        self._info = await self._client.update_process(self.id, new_tag=tag, new_label=label)
        return self._info

    async def delete(self, *, stop: bool = False) -> None:
        """As `AsyncPicoDClient.delete_process`."""
        await self._client.delete_process(self.id, stop=stop)

    async def close(self) -> None:
        """Disconnects from its output, and ends the holding back by `backpressure`; iterating connects again.

        An iteration that goes on meanwhile ends with `CancelledError`.
        """
        await self._follower.close()
        request = self._acknowledgements.release()
        if request is not None and self._result is None:
            with contextlib.suppress(PicoDError, grpc.aio.UsageError):  # Then its time runs out; the client is closed.
                await self._client._unary(self._client._processes.AcknowledgeOutput, request, END_SECONDS)

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
        if self._stop_on_exit:
            # A process that is gone is stopped, and an error on the way is not to be hidden by one of stopping.
            with contextlib.suppress(NotFoundError if error is None else PicoDError):
                await self.stop()

    def _acknowledge(self, *, asked: bool) -> None:
        request = self._acknowledgements.take(self._output.offsets, asked=asked)
        if request is not None:
            # Kept, because a loop does not keep its tasks.
            self._acknowledging = asyncio.ensure_future(self._client._acknowledge(self._acknowledgements, request))

    @property
    def _selector(self) -> process_pb2.ProcessSelector:
        return process_pb2.ProcessSelector(id=self.id)

    def _attach(self) -> process_pb2.AttachRequest:
        return attach_request(
            self.id,
            self._output.offsets,
            follower_id=self._follower_id,
            keepalive_interval=self._client._keepalive_interval,
        )

    def _attach_at_end(self) -> process_pb2.AttachRequest:
        return attach_request(self.id, None, follower_id="", keepalive_interval=self._client._keepalive_interval)


class AsyncProcessWatch:
    """As `ProcessWatch`, for `async for`."""

    def __init__(self, client: AsyncPicoDClient, follower: AsyncFollower[Any], state: WatchState) -> None:
        self._client = client
        self._follower = follower
        self._compared = follower.opened
        self._state = state
        self._events: deque[ProcessEvent] = deque()
        self._closed = False

    @classmethod
    async def _open(cls, client: AsyncPicoDClient) -> AsyncProcessWatch:
        follower = client._follow_events()
        try:
            await follower.receive()
            return cls(client, follower, WatchState(await client.list_processes()))
        except BaseException:
            await follower.close()
            raise

    def __aiter__(self) -> AsyncIterator[ProcessEvent]:
        return self

    async def __anext__(self) -> ProcessEvent:
        """Waits for the next event.

        Raises:
            StopAsyncIteration: It was closed.
            UnavailableError: The connection could not be made again.
            ResourceExhaustedError: Too many events wait to be taken.
        """
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            try:
                response = await self._follower.receive()
            except CancelledError:
                if self._closed:
                    raise StopAsyncIteration from None
                raise
            if self._follower.opened != self._compared:
                self._events.extend(self._state.compare(await self._client.list_processes()))
                self._compared = self._follower.opened
            self._events.extend(self._state.accept(response))
        return self._events.popleft()

    async def close(self) -> None:
        """Stops watching."""
        self._closed = True
        await self._follower.close(finish=True)

    async def __aenter__(self) -> AsyncProcessWatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
