"""The asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import grpc

from .acknowledgements import Acknowledgements
from .aio_files import AsyncFileMethods
from .aio_process import AsyncProcess, AsyncProcessWatch
from .aio_streams import AsyncFollower, AsyncStream
from .code import resolve_program
from .commands import stdout_of
from .connection import DEFAULT_PORT, ChannelArguments, Metadata, TlsOptions, open_channel, resolve_connection
from .directory_transfer import DirectoryDownload, DirectoryUpload, download_directory, upload_directory
from .download import Content
from .errors import CancelledError, CommandError, DeadlineExceededError, PicoDError, UnavailableError, rpc_errors
from .file_download import DOWNLOAD_PARTS, DownloadOptions, download_file
from .file_upload import UPLOAD_PARTS, UploadOptions, upload_file
from .in_thread import in_thread
from .once import HEALTH_CHECK, Instance, Once
from .processes import OutputOffsets, ProcessInfo, ProcessState, StopResult, process_info, stop_result
from .progress import ProgressOption
from .requests import (
    END_SECONDS,
    attach_request,
    duration,
    execute_deadline_seconds,
    execute_request,
    list_request,
    new_follower_id,
    new_process_id,
    read_file_request,
    selector,
    signal_name,
    start_request,
)
from .results import EntryInfo, ExecuteResult, ResourceLimits, entry_info, execute_result
from .retry import NEVER_RETRY, RetryPolicy, checked_keepalive, silence_seconds
from .sync import SyncOptions, SyncResult, sync_directory
from .transfer import Transfer
from .upload import Upload, upload_of_content
from .v1 import filesystem_pb2, filesystem_pb2_grpc, process_pb2, process_pb2_grpc
from .v1.process_pb2 import AcknowledgeOutputRequest

_T = TypeVar("_T")


class AsyncPicoDClient(AsyncFileMethods):
    """`PicoDClient` with coroutines: same arguments, results and errors.

    It belongs to the event loop in which it is created. Cancelling the task that awaits a method cancels the call: a command
    without `id` is killed, an upload leaves the remote file as it was, a download the local one. Local files are read and
    written in threads, so that a slow disk does not stall the loop. Uploads have a connection of their own. It does not survive
    a fork.

    Args: as `PicoDClient`.

    Raises:
        RuntimeError: There is no running event loop.
        ValueError: As `PicoDClient`.
        OSError: As `PicoDClient`.
    """

    def __init__(
        self,
        host: str,
        port: int = DEFAULT_PORT,
        access_token: str | None = None,
        *,
        tls: bool | TlsOptions = False,
        request_timeout: float | None = 30.0,
        transfer_timeout: float | None = None,
        execute_slack: float = 10.0,
        retry: RetryPolicy | None = RetryPolicy(),  # noqa: B008 (immutable)
        repeat_commands: bool = True,
        keepalive_interval: float = 10.0,
        channel_arguments: ChannelArguments = (),
    ) -> None:
        asyncio.get_running_loop()
        self._connection = connection = resolve_connection(host, port, access_token, tls, channel_arguments)
        self._metadata = connection.metadata
        self._request_timeout = request_timeout
        self._transfer_timeout = transfer_timeout
        self._execute_slack = execute_slack
        self._retry = retry or NEVER_RETRY
        self._repeat_commands = repeat_commands and self._retry.attempts > 1
        self._instance = Instance()
        self._ids_to_end: set[str] = set()
        self._closing = False
        self._keepalive_interval = checked_keepalive(keepalive_interval)
        self._own_channels: weakref.WeakSet[grpc.aio.Channel] = weakref.WeakSet()
        self._channel = self._open_channel()
        # Uploads go through gRPC's threads: when the daemon refuses one early, grpc.aio may replace the daemon's status by an
        # INTERNAL of its own (`Call._write` sets it after a failed write). No connection is made before the first upload.
        self._upload_channel = open_channel(connection)
        self._uploads = filesystem_pb2_grpc.FilesystemServiceStub(self._upload_channel)
        self._files = filesystem_pb2_grpc.FilesystemServiceStub(self._channel)
        self._processes = process_pb2_grpc.ProcessServiceStub(self._channel)

    async def close(self) -> None:
        """Closes the connection; calls in flight are cancelled, their commands are killed. Processes of `start` run on."""
        self._closing = True
        await asyncio.gather(*(self._end(process_id) for process_id in self._ids_to_end))
        self._upload_channel.close()
        await asyncio.gather(*(channel.close() for channel in (self._channel, *self._own_channels)))

    async def __aenter__(self) -> AsyncPicoDClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def execute(
        self,
        command: str = "",
        timeout: float = 30,
        *,
        argv: Sequence[str] = (),
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        stdin: str | bytes = b"",
        max_output_bytes: int | None = None,
        id: str = "",  # noqa: A002 (the field's name)
        limits: ResourceLimits | None = None,
    ) -> ExecuteResult:
        """As `PicoDClient.execute`; cancelling the task kills the command, unless it has an `id`."""
        deadline = execute_deadline_seconds(timeout, self._execute_slack)
        request = execute_request(
            command,
            argv=argv,
            timeout=timeout,
            cwd=cwd,
            env=env,
            user=user,
            stdin=stdin,
            max_output_bytes=max_output_bytes,
            id=id or (new_process_id() if self._repeat_commands else ""),
            limits=limits,
        )

        async def attempt(metadata: Metadata) -> ExecuteResult:
            return execute_result(await self._unary(self._processes.Execute, request, deadline, metadata))

        if not request.id:
            return await attempt(())
        if id:
            return await self._once(attempt)
        # With an id the daemon lets the command run on when the call ends, so it must be told.
        async with self._ending(request.id):
            return await self._once(attempt)

    async def execute_command(
        self,
        command: str,
        timeout: float = 30,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        max_output_bytes: int | None = None,
    ) -> str:
        """As `PicoDClient.execute_command`."""
        result = await self.execute(command, timeout, cwd=cwd, env=env, user=user, max_output_bytes=max_output_bytes)
        return stdout_of(result, command)

    async def execute_commands(
        self,
        commands: Sequence[str],
        timeout: float = 30,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        max_output_bytes: int | None = None,
    ) -> dict[str, str]:
        """As `PicoDClient.execute_commands`: one after the other, not concurrently."""
        completed: dict[str, str] = {}
        for command in commands:
            try:
                completed[command] = await self.execute_command(
                    command, timeout, cwd=cwd, env=env, user=user, max_output_bytes=max_output_bytes
                )
            except CommandError as error:
                error.completed = completed
                raise
        return completed

    async def run_code(
        self,
        language: str,
        code: str,
        timeout: float = 30,
        *,
        interpreter: str | None = None,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        max_output_bytes: int | None = None,
    ) -> str:
        """As `PicoDClient.run_code`."""
        program = resolve_program(language, code, interpreter)
        async with self._carried(program.remote_path, program.source, user):
            for argv in program.command_lines():
                result = await self.execute(
                    argv=argv,
                    timeout=timeout,
                    cwd=cwd,
                    env=env,
                    user=user,
                    stdin=program.stdin,
                    max_output_bytes=max_output_bytes,
                )
                if not program.interpreter_missing(result):
                    break
        return program.output_of(result)

    async def start(
        self,
        command: str = "",
        *,
        argv: Sequence[str] = (),
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        pty: tuple[int, int] | None = None,
        stdin: bool = False,
        timeout: float = 0,
        limits: ResourceLimits | None = None,
        id: str = "",  # noqa: A002 (the field's name)
        tag: str = "",
        label: str = "",
        backpressure: bool = False,
        login: bool = False,
        session_id: str = "",
    ) -> AsyncProcess:
        """As `PicoDClient.start`."""
        request = start_request(
            command,
            argv=argv,
            cwd=cwd,
            env=env,
            user=user,
            pty=pty,
            stdin=stdin,
            timeout=timeout,
            limits=limits,
            id=id,
            tag=tag,
            label=label,
            backpressure=backpressure,
            login=login,
            session_id=session_id,
            keepalive_interval=self._keepalive_interval,
        )
        stream, info = await self._once(lambda metadata: self._begin("Start", request, metadata))
        return await self._process_of(stream, info, OutputOffsets(), follower_id=request.follower_id, stop_on_exit=True)

    async def attach(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        from_offsets: OutputOffsets | None = None,
        from_end: bool = False,
        backpressure: bool = False,
    ) -> AsyncProcess:
        """As `PicoDClient.attach`."""
        if from_offsets and from_end:
            raise ValueError("give either from_offsets or from_end")
        info = await self.get_process(id, tag=tag)
        offsets = info.written if from_end else from_offsets or OutputOffsets()
        stream = None
        follower_id = new_follower_id() if backpressure else ""
        if follower_id:
            request = attach_request(info.id, offsets, follower_id=follower_id, keepalive_interval=self._keepalive_interval)
            stream, info = await self._repeated(lambda: self._begin("Attach", request))
        return await self._process_of(stream, info, offsets, follower_id=follower_id, stop_on_exit=False)

    async def get_process(self, id: str = "", *, tag: str = "") -> ProcessInfo:  # noqa: A002 (the field's name)
        """As `PicoDClient.get_process`."""
        request = process_pb2.GetProcessRequest(process=selector(id, tag))
        return process_info((await self._repeated(lambda: self._process_call("GetProcess", request))).process)

    async def list_processes(self, tag: str = "", state: ProcessState | None = None) -> list[ProcessInfo]:
        """As `PicoDClient.list_processes`."""
        request = list_request(tag, state)
        response = await self._repeated(lambda: self._process_call("ListProcesses", request))
        return [process_info(process) for process in response.processes]

    async def watch_processes(self) -> AsyncProcessWatch:
        """As `PicoDClient.watch_processes`."""
        return await AsyncProcessWatch._open(self)

    async def update_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        new_tag: str | None = None,
        new_label: str | None = None,
    ) -> ProcessInfo:
        """As `PicoDClient.update_process`."""
        request = process_pb2.UpdateProcessRequest(process=selector(id, tag), tag=new_tag, label=new_label)
        return process_info((await self._repeated(lambda: self._process_call("UpdateProcess", request))).process)

    async def send_signal(
        self,
        signal: str | int,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        leader_only: bool = False,
    ) -> None:
        """As `PicoDClient.send_signal`."""
        request = process_pb2.SendSignalRequest(process=selector(id, tag), signal=signal_name(signal), leader_only=leader_only)
        await self._process_call("SendSignal", request)

    async def stop_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        grace: float | None = None,
    ) -> StopResult:
        """As `PicoDClient.stop_process`."""
        request = process_pb2.StopProcessRequest(process=selector(id, tag), grace=None if grace is None else duration(grace))
        return stop_result(await self._repeated(lambda: self._process_call("StopProcess", request, grace or 0)))

    async def delete_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        stop: bool = False,
    ) -> None:
        """As `PicoDClient.delete_process`."""
        await self._process_call("DeleteProcess", process_pb2.DeleteProcessRequest(process=selector(id, tag), stop=stop))

    async def read_file(
        self, path: str, *, offset: int | None = None, length: int | None = None, user: str = "", checksum: bool = True
    ) -> bytes:
        """As `PicoDClient.read_file`."""
        request = read_file_request(path, offset=offset, length=length, user=user, checksum=checksum)

        async def attempt() -> bytes:
            content = Content(checksum)
            with self._reading(request) as responses:
                chunks = [content.chunk_of(response) async for response in responses]
            content.verify()
            return b"".join(chunks)

        return await self._repeated(attempt)

    async def write_file(self, content: str | bytes, remote_path: str, mode: int | None = None, *, user: str = "") -> EntryInfo:
        """As `PicoDClient.write_file`."""
        return await self._send(upload_of_content(content, remote_path, mode=mode, user=user))

    async def upload_file(
        self,
        local_path: str | os.PathLike[str],
        remote_path: str,
        mode: int | None = None,
        progress: ProgressOption = False,
        *,
        user: str = "",
        checksum: bool = True,
        sync: bool = False,
        must_not_exist: bool = False,
        if_etag: str = "",
        parts: int = UPLOAD_PARTS,
    ) -> EntryInfo:
        """As `PicoDClient.upload_file`."""
        options = UploadOptions(
            remote_path,
            mode,
            user=user,
            checksum=checksum,
            sync=sync,
            must_not_exist=must_not_exist,
            if_etag=if_etag,
            parts=parts,
        )
        return await self._transferred(lambda transfer: upload_file(transfer, local_path, options, progress))

    async def download_file(
        self,
        remote_path: str,
        local_path: str | os.PathLike[str],
        progress: ProgressOption = False,
        *,
        user: str = "",
        checksum: bool = True,
        sync: bool = False,
        parts: int = DOWNLOAD_PARTS,
    ) -> None:
        """As `PicoDClient.download_file`."""
        options = DownloadOptions(remote_path, user=user, checksum=checksum, sync=sync, parts=parts)
        await self._transferred(lambda transfer: download_file(transfer, local_path, options, progress))

    async def upload_dir(
        self,
        local_path: str | os.PathLike[str],
        remote_path: str,
        progress: ProgressOption = False,
        *,
        atomic: bool = False,
        exclude: Iterable[str] = (),
        ignore_files: Iterable[str] = (),
        preserve_owner: bool = False,
        user: str = "",
    ) -> DirectoryUpload:
        """As `PicoDClient.upload_dir`."""
        metadata = filesystem_pb2.WriteArchiveMetadata(path=remote_path, user=user, atomic=atomic, preserve_owner=preserve_owner)
        return await self._transferred(
            lambda transfer: upload_directory(
                transfer, local_path, metadata, exclude=exclude, ignore_files=ignore_files, progress=progress
            )
        )

    async def download_dir(
        self,
        remote_path: str,
        local_path: str | os.PathLike[str],
        progress: ProgressOption = False,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        gitignore: bool = False,
        skip_unreadable: bool = False,
        user: str = "",
    ) -> DirectoryDownload:
        """As `PicoDClient.download_dir`."""
        request = filesystem_pb2.ReadArchiveRequest(
            path=remote_path, user=user, include=include, exclude=exclude, gitignore=gitignore, skip_unreadable=skip_unreadable
        )
        return await self._transferred(lambda transfer: download_directory(transfer, local_path, request, progress))

    async def sync_dir(
        self,
        local_path: str | os.PathLike[str],
        remote_path: str,
        progress: ProgressOption = False,
        *,
        delete: bool = False,
        checksum: bool = False,
        exclude: Iterable[str] = (),
        ignore_files: Iterable[str] = (".gitignore", ".picodignore"),
        user: str = "",
    ) -> SyncResult:
        """As `PicoDClient.sync_dir`."""
        options = SyncOptions(
            remote_path, user=user, delete=delete, checksum=checksum, exclude=tuple(exclude), ignore_files=tuple(ignore_files)
        )
        return await self._transferred(lambda transfer: sync_directory(transfer, local_path, options, progress))

    @contextlib.asynccontextmanager
    async def _ending(self, process_id: str) -> AsyncIterator[None]:
        """Ends the command when its answer is not waited for any longer."""
        self._ids_to_end.add(process_id)
        try:
            yield
        except BaseException:
            await self._end(process_id)
            raise
        else:
            if self._closing:
                raise CancelledError("the client was closed")
        finally:
            self._ids_to_end.discard(process_id)

    async def _end(self, process_id: str) -> None:
        request = process_pb2.StopProcessRequest(process=selector(process_id, ""))
        # It is being ended also when nobody waits until it is. UsageError: the client is closed.
        with contextlib.suppress(PicoDError, grpc.aio.UsageError):
            await self._unary(self._processes.StopProcess, request, END_SECONDS)

    async def _begin(self, method: str, request: object, metadata: Metadata = ()) -> tuple[AsyncStream[Any], ProcessInfo]:
        """Opens a stream and receives its first message, `started`."""
        stream: AsyncStream[Any] = self._open_stream(method, request, None, False, metadata)
        try:
            return stream, process_info((await stream.receive(self._request_timeout)).event.started.process)
        except UnavailableError:
            await stream.close()
            if stream.silent:
                raise DeadlineExceededError(f"no answer within {self._request_timeout} s") from None
            raise
        except BaseException:
            await stream.close()
            raise

    async def _process_of(
        self,
        stream: AsyncStream[Any] | None,
        info: ProcessInfo,
        offsets: OutputOffsets,
        *,
        follower_id: str,
        stop_on_exit: bool,
    ) -> AsyncProcess:
        # Only what holds the process back stays open: iterating opens it again, and open streams are limited.
        if stream is not None and not follower_id:
            await stream.close()
            stream = None
        return AsyncProcess(self, info, offsets, follower_id=follower_id, stop_on_exit=stop_on_exit, stream=stream)

    def _follow(
        self,
        request: Callable[[], object],
        deadline: float | None = None,
        *,
        method: str = "Attach",
        stream: AsyncStream[Any] | None = None,
    ) -> AsyncFollower[Any]:
        """Follows a stream that `request` opens each time where its reader is."""
        return AsyncFollower(
            lambda own_connection, timeout: self._open_stream(method, request(), timeout, own_connection),
            silence_seconds(self._keepalive_interval),
            self._retry,
            deadline,
            stream,
        )

    def _follow_events(self) -> AsyncFollower[process_pb2.WatchProcessesResponse]:
        request = process_pb2.WatchProcessesRequest(keepalive_interval=duration(self._keepalive_interval))
        return self._follow(lambda: request, method="WatchProcesses")

    def _open_stream(
        self, method: str, request: object, timeout: float | None, own_connection: bool, metadata: Metadata = ()
    ) -> AsyncStream[Any]:
        channel = self._open_channel() if own_connection else None
        if channel:
            self._own_channels.add(channel)
        if method == "WatchDirectory":
            stub: Any = filesystem_pb2_grpc.FilesystemServiceStub(channel) if channel else self._files
        else:
            stub = process_pb2_grpc.ProcessServiceStub(channel) if channel else self._processes
        with rpc_errors():
            call = getattr(stub, method)(request, timeout=timeout, metadata=self._metadata + metadata)
        return AsyncStream(call, channel)

    async def _process_call(self, method: str, request: object, extra_seconds: float = 0, metadata: Metadata = ()) -> Any:  # noqa: ANN401 (untyped stubs)
        timeout = None if self._request_timeout is None else self._request_timeout + extra_seconds
        return await self._unary(getattr(self._processes, method), request, timeout, metadata)

    async def _unary(
        self,
        method: Any,  # noqa: ANN401 (untyped stubs)
        request: object,
        timeout: float | None,
        metadata: Metadata = (),
    ) -> Any:  # noqa: ANN401
        with rpc_errors():
            return await method(request, timeout=timeout, metadata=self._metadata + metadata)

    def _open_channel(self) -> grpc.aio.Channel:
        target, credentials, arguments = self._connection.target, self._connection.credentials, self._connection.arguments
        if credentials:
            return grpc.aio.secure_channel(target, credentials, arguments)
        return grpc.aio.insecure_channel(target, arguments)

    @contextlib.contextmanager
    def _reading(self, request: filesystem_pb2.ReadFileRequest) -> Iterator[AsyncIterable[filesystem_pb2.ReadFileResponse]]:
        with rpc_errors():
            call = self._files.ReadFile(request, timeout=self._transfer_timeout, metadata=self._metadata)
            try:
                yield call
            finally:
                call.cancel()

    async def _send(self, upload: Upload) -> EntryInfo:
        with upload, rpc_errors():
            call = self._uploads.WriteFile.future(upload, timeout=self._transfer_timeout, metadata=self._metadata)
            try:
                await _done(call)
                return entry_info(call.result().entry)
            finally:
                call.cancel()

    async def _transferred(self, run: Callable[[Transfer], _T]) -> _T:
        transfer = Transfer(self._uploads, self._metadata, self._transfer_timeout, self._retry)
        return await in_thread(lambda: run(transfer), transfer.cancel)

    async def _once(self, attempt: Callable[[Metadata], Awaitable[_T]]) -> _T:
        """Repeats what the daemon does once, however often it is asked to."""
        once = Once(self._instance, self._retry)
        while True:
            try:
                if once.must_ask:
                    await self._ask_instance()
                return await attempt(once.metadata())
            except PicoDError as error:
                delay_seconds = once.seconds_after(error)
            await asyncio.sleep(delay_seconds)

    async def _ask_instance(self) -> None:
        with rpc_errors():
            check: Any = self._channel.unary_unary(HEALTH_CHECK)
            call = check(b"", timeout=self._request_timeout, metadata=self._metadata)
            await call
            self._instance.hear(await call.initial_metadata())

    async def _acknowledge(self, acknowledgements: Acknowledgements, request: AcknowledgeOutputRequest | None) -> None:
        """Sends a word, and behind it what had to wait for it."""
        while request is not None:
            with contextlib.suppress(PicoDError, grpc.aio.UsageError):  # The next one makes it good; the client is closed.
                await self._process_call("AcknowledgeOutput", request)
            request = acknowledgements.answered()

    async def _repeated(self, attempt: Callable[[], Awaitable[_T]]) -> _T:
        for delay_seconds in self._retry.delays_seconds():
            try:
                return await attempt()
            except UnavailableError:
                await asyncio.sleep(delay_seconds)
        return await attempt()

    @contextlib.asynccontextmanager
    async def _carried(self, remote_path: str | None, source: bytes, user: str) -> AsyncIterator[None]:
        """Keeps `source` in a file of the sandbox meanwhile, if there is a path for it."""
        if remote_path is None:
            yield
            return
        try:
            await self.write_file(source, remote_path, 0o600, user=user)
            yield
        finally:
            with contextlib.suppress(PicoDError):
                await self.execute(argv=("rm", "-f", "--", remote_path), user=user)


async def _done(call: grpc.Future[Any]) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def notify(_: grpc.Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop was closed before a cancelled call had ended.
            loop.call_soon_threadsafe(done.set)

    call.add_done_callback(notify)
    await done.wait()
