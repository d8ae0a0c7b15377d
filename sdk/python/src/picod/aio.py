"""The asyncio client."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import grpc

from .code import resolve_program
from .commands import stdout_of
from .connection import DEFAULT_PORT, ChannelArguments, TlsOptions, open_channel, resolve_connection
from .download import Content, Download
from .errors import CommandError, PicoDError, UnavailableError, rpc_errors
from .progress import Progress
from .requests import execute_deadline_seconds, execute_request, read_file_request, stat_request
from .results import EntryInfo, ExecuteResult, ResourceLimits, entry_info, execute_result
from .retry import NEVER_RETRY, RetryPolicy
from .upload import Upload, upload_of_content, upload_of_file
from .v1 import filesystem_pb2, filesystem_pb2_grpc, process_pb2_grpc

_T = TypeVar("_T")


class AsyncPicoDClient:
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
        channel_arguments: ChannelArguments = (),
    ) -> None:
        asyncio.get_running_loop()
        connection = resolve_connection(host, port, access_token, tls, channel_arguments)
        self._metadata = connection.metadata
        self._request_timeout = request_timeout
        self._transfer_timeout = transfer_timeout
        self._execute_slack = execute_slack
        self._retry = retry or NEVER_RETRY
        self._channel = (
            grpc.aio.secure_channel(connection.target, connection.credentials, connection.arguments)
            if connection.credentials
            else grpc.aio.insecure_channel(connection.target, connection.arguments)
        )
        # Uploads go through gRPC's threads: when the daemon refuses one early, grpc.aio may replace the daemon's status by an
        # INTERNAL of its own (`Call._write` sets it after a failed write). No connection is made before the first upload.
        self._upload_channel = open_channel(connection)
        self._uploads = filesystem_pb2_grpc.FilesystemServiceStub(self._upload_channel)
        self._files = filesystem_pb2_grpc.FilesystemServiceStub(self._channel)
        self._processes = process_pb2_grpc.ProcessServiceStub(self._channel)

    async def close(self) -> None:
        """Closes the connection; calls in flight are cancelled, their commands are killed."""
        self._upload_channel.close()
        await self._channel.close()

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
            id=id,
            limits=limits,
        )
        return execute_result(await self._unary(self._processes.Execute, request, deadline))

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

    async def stat(self, path: str, *, user: str = "", follow_symlinks: bool = False) -> EntryInfo:
        """As `PicoDClient.stat`."""
        request = stat_request(path, user=user, follow_symlinks=follow_symlinks)
        response = await self._repeated(lambda: self._unary(self._files.Stat, request, self._request_timeout))
        return entry_info(response.entry)

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
        progress: bool = False,
        *,
        user: str = "",
        checksum: bool = True,
    ) -> EntryInfo:
        """As `PicoDClient.upload_file`."""
        return await self._send(
            await asyncio.to_thread(
                upload_of_file,
                local_path,
                remote_path,
                mode=mode,
                user=user,
                checksum=checksum,
                progress=progress,
            )
        )

    async def download_file(
        self,
        remote_path: str,
        local_path: str | os.PathLike[str],
        progress: bool = False,
        *,
        user: str = "",
        checksum: bool = True,
    ) -> None:
        """As `PicoDClient.download_file`."""
        request = read_file_request(remote_path, user=user, checksum=checksum)
        with Progress(progress, os.path.basename(remote_path)) as bar:

            async def attempt() -> None:
                with Download(local_path, bar, checksum) as download:
                    with self._reading(request) as responses:
                        async for response in responses:
                            await asyncio.to_thread(download.accept, response)
                    download.finish()

            await self._repeated(attempt)

    async def _unary(self, method: Any, request: object, timeout: float | None) -> Any:  # noqa: ANN401 (untyped stubs)
        with rpc_errors():
            return await method(request, timeout=timeout, metadata=self._metadata)

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
