"""The blocking client."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

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


class PicoDClient:
    """Runs commands and moves files in one sandbox, over one connection that is made on first use.

    It may be used by many threads at once. It does not survive a fork: create it in the process that uses it (with
    `multiprocessing`, prefer the start method "spawn"), because gRPC's threads exist only in the parent.

    Every method raises a subclass of `PicoDError` when PicoD could not do what was asked: `UnauthenticatedError` for a wrong
    token, `UnavailableError` when the daemon cannot be reached, `DeadlineExceededError` when it does not answer in time, and
    what the method names. After `close` every method raises ValueError.

    Args:
        host: Name or address of the sandbox.
        port: Port of the daemon.
        access_token: The daemon's token. Default: the environment variable PICOD_ACCESS_TOKEN; an empty string sends none.
        tls: True for TLS with gRPC's own root certificates, or `TlsOptions`. Default: cleartext, the token included.
        request_timeout: Seconds that a call which neither runs a command nor moves a file may take; None for no limit.
        transfer_timeout: Seconds that one upload or download may take; None for no limit. A dead connection ends it anyway.
        execute_slack: Seconds by which the deadline of a call exceeds the timeout of its command, so that the daemon's own
            answer, with the output so far, comes first. More than the daemon's `--kill-grace`.
        retry: When `stat`, `read_file` and `download_file` are repeated; None never does. Nothing else is ever repeated.
        channel_arguments: Further gRPC channel arguments; they win over those of this package.

    Raises:
        ValueError: The port or the token is malformed, or only one half of a client certificate is given.
        OSError: A certificate file cannot be read.
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
        connection = resolve_connection(host, port, access_token, tls, channel_arguments)
        self._metadata = connection.metadata
        self._request_timeout = request_timeout
        self._transfer_timeout = transfer_timeout
        self._execute_slack = execute_slack
        self._retry = retry or NEVER_RETRY
        self._channel = open_channel(connection)
        self._files = filesystem_pb2_grpc.FilesystemServiceStub(self._channel)
        self._processes = process_pb2_grpc.ProcessServiceStub(self._channel)

    def close(self) -> None:
        """Closes the connection; calls in flight end with `CancelledError`, their commands are killed."""
        self._channel.close()

    def __enter__(self) -> PicoDClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def execute(
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
        """Runs one command to its end. A command that fails is a result, not an exception.

        Interrupting the call kills the command, unless it has an `id`. A call whose answer was lost is not repeated.

        Args:
            command: Handed to the user's shell with -c. Exactly one of `command` and `argv` is required.
            timeout: Seconds until the daemon ends the command (TIMED_OUT, exit code 124); 0 for none.
            argv: Program and arguments, run without a shell.
            cwd: Working directory. Default: the daemon's.
            env: Added to the daemon's small default environment.
            user: Name or numeric id of the user to run as. Default: the daemon's.
            stdin: Written to standard input, text as UTF-8; at most about 4 MiB.
            max_output_bytes: Bytes kept per stream: beyond it the first and the last half. Default: the daemon's (2 MiB); at
                most 64 MiB.
            id: Idempotency key: the same request with the same id gives the one result of the one run, as long as that
                daemon lives and for 10 minutes after the end.
            limits: Resource limits of the process.

        Raises:
            InvalidArgumentError: Neither or both of `command` and `argv`; a malformed or unknown value.
            NotFoundError: `cwd` does not exist.
            FailedPreconditionError: `cwd` is not a directory.
            PermissionDeniedError: The user may not enter `cwd`, or the daemon may not become that user.
            AlreadyExistsError: The `id` was used for a different command.
            ResourceExhaustedError: Too many processes, or a request over the daemon's message limit.
            ValueError: The timeout is not finite.
        """
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
        return execute_result(self._unary(self._processes.Execute, request, deadline))

    def execute_command(
        self,
        command: str,
        timeout: float = 30,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        max_output_bytes: int | None = None,
    ) -> str:
        """Runs one shell command and returns its stdout, whole; the arguments are those of `execute`.

        Raises:
            CommandError: It failed. `CommandTimeoutError` when its time was up, `OutputTruncatedError` when it succeeded but
                wrote more to stdout than `max_output_bytes`.
            PicoDError: As `execute`.
        """
        result = self.execute(command, timeout, cwd=cwd, env=env, user=user, max_output_bytes=max_output_bytes)
        return stdout_of(result, command)

    def execute_commands(
        self,
        commands: Sequence[str],
        timeout: float = 30,
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        user: str = "",
        max_output_bytes: int | None = None,
    ) -> dict[str, str]:
        """Runs shell commands one after the other, each with the given timeout, and returns command -> stdout in that order.

        Each has a shell of its own: a `cd` does not reach the next one. Of a command that is listed twice the later stdout
        is kept.

        Raises:
            CommandError: One failed; those after it were not run, `completed` holds those before it.
            PicoDError: As `execute`.
        """
        completed: dict[str, str] = {}
        for command in commands:
            try:
                completed[command] = self.execute_command(
                    command, timeout, cwd=cwd, env=env, user=user, max_output_bytes=max_output_bytes
                )
            except CommandError as error:
                error.completed = completed
                raise
        return completed

    def run_code(
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
        """Runs a program in the sandbox and returns its stdout, whole.

        The code reaches the interpreter on standard input, so it may hold any characters and be of any size, no file is left
        in the sandbox, and standard input of the program itself is at its end. Python imports from `cwd` first.

        Args:
            language: "python", "bash", "sh", "node" or "javascript" (the same as "node").
            code: The program.
            timeout: Seconds until the daemon ends it; 0 for none.
            interpreter: Path or name of the interpreter, for example "venv/bin/python". Default: the language's, from
                PATH of the sandbox.
            cwd: As for `execute`.
            env: As for `execute`.
            user: As for `execute`.
            max_output_bytes: As for `execute`.

        Raises:
            ValueError: The language is none of these.
            CommandError: The program failed; its traceback is in `stderr`. `InterpreterNotFoundError`, `CommandTimeoutError`
                and `OutputTruncatedError` say why, otherwise.
            PicoDError: As `execute`.
        """
        program = resolve_program(language, code, interpreter)
        with self._carried(program.remote_path, program.source, user):
            for argv in program.command_lines():
                result = self.execute(
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

    def stat(self, path: str, *, user: str = "", follow_symlinks: bool = False) -> EntryInfo:
        """Describes one file, directory or other entry. Repeated as `retry` says.

        Args:
            path: Absolute, relative to the user's working directory, or starting with `~`.
            user: Name or numeric id of the user to act as. Default: the daemon's.
            follow_symlinks: Describe what a symbolic link points to instead of the link itself.

        Raises:
            NotFoundError: Nothing has that name, or the link to follow dangles.
        """
        request = stat_request(path, user=user, follow_symlinks=follow_symlinks)
        response = self._repeated(lambda: self._unary(self._files.Stat, request, self._request_timeout))
        return entry_info(response.entry)

    def read_file(
        self, path: str, *, offset: int | None = None, length: int | None = None, user: str = "", checksum: bool = True
    ) -> bytes:
        """Returns the content of a file, verified to be complete. Repeated as `retry` says.

        Args:
            path: As for `stat`; symbolic links are followed.
            offset: Byte to start at. Default 0.
            length: Bytes to return at most. Default: to the end of the file.
            user: Name or numeric id of the user to act as. Default: the daemon's.
            checksum: Compare the SHA-256 of what was sent and what arrived.

        Raises:
            NotFoundError: Nothing has that name.
            FailedPreconditionError: It is a directory, socket, FIFO or device.
            OutOfRangeError: The offset lies beyond the end.
            AbortedError: The file shrank meanwhile.
            DataLossError: Something else arrived than was sent.
        """
        request = read_file_request(path, offset=offset, length=length, user=user, checksum=checksum)

        def attempt() -> bytes:
            content = Content(checksum)
            with self._reading(request) as responses:
                chunks = [content.chunk_of(response) for response in responses]
            content.verify()
            return b"".join(chunks)

        return self._repeated(attempt)

    def write_file(self, content: str | bytes, remote_path: str, mode: int | None = None, *, user: str = "") -> EntryInfo:
        """Stores a file as a whole, or not at all; its SHA-256 is verified before it becomes visible. Never repeated.

        Missing parent directories are made.

        Args:
            content: Text is stored as UTF-8.
            remote_path: As for `stat`; symbolic links are followed.
            mode: Permission bits such as 0o644, set exactly. Default: those of the file it replaces, else 0o644.
            user: Name or numeric id of the user to act as, who then owns new files. Default: the daemon's.

        Returns:
            The file as it is now.

        Raises:
            FailedPreconditionError: The path is a directory or a socket.
            ResourceExhaustedError: The disk is full.
            DataLossError: Something else arrived than was sent.
        """
        return self._send(upload_of_content(content, remote_path, mode=mode, user=user))

    def upload_file(
        self,
        local_path: str | os.PathLike[str],
        remote_path: str,
        mode: int | None = None,
        progress: bool = False,
        *,
        user: str = "",
        checksum: bool = True,
    ) -> EntryInfo:
        """Stores a local file in the sandbox, as `write_file` does, with one chunk of it in memory. Never repeated.

        Args:
            local_path: A regular file.
            remote_path: As for `write_file`.
            mode: As for `write_file`; the local file's mode is not carried over.
            progress: Show a progress bar on stderr; needs tqdm.
            user: As for `write_file`.
            checksum: Announce the SHA-256, for which the local file is read twice. Otherwise only its size is verified.

        Returns:
            The file as it is now.

        Raises:
            OSError: The local file cannot be read.
            ValueError: It is not a regular file.
            ImportError: `progress` without tqdm.
            PicoDError: As `write_file`; InvalidArgumentError or DataLossError when the local file changes meanwhile.
        """
        return self._send(upload_of_file(local_path, remote_path, mode=mode, user=user, checksum=checksum, progress=progress))

    def download_file(
        self,
        remote_path: str,
        local_path: str | os.PathLike[str],
        progress: bool = False,
        *,
        user: str = "",
        checksum: bool = True,
    ) -> None:
        """Puts a file of the sandbox in place of a local one, with one chunk of it in memory. Repeated as `retry` says.

        The content goes to a temporary file beside `local_path`, which takes the name once everything is verified; after any
        error the local file is what it was. An existing file keeps its permission bits; a new one gets those of the umask.

        Args:
            remote_path: As for `read_file`.
            local_path: Destination; its directory must exist. Symbolic links are followed.
            progress: Show a progress bar on stderr; needs tqdm.
            user: As for `read_file`.
            checksum: Compare the SHA-256 of what was sent and what arrived.

        Raises:
            OSError: The local file cannot be written.
            ValueError: The local path exists and is not a regular file.
            ImportError: `progress` without tqdm.
            PicoDError: As `read_file`.
        """
        request = read_file_request(remote_path, user=user, checksum=checksum)
        with Progress(progress, os.path.basename(remote_path)) as bar:

            def attempt() -> None:
                with Download(local_path, bar, checksum) as download:
                    with self._reading(request) as responses:
                        for response in responses:
                            download.accept(response)
                    download.finish()

            self._repeated(attempt)

    def _unary(self, method: Any, request: object, timeout: float | None) -> Any:  # noqa: ANN401 (untyped stubs)
        with rpc_errors():
            return method(request, timeout=timeout, metadata=self._metadata)

    @contextlib.contextmanager
    def _reading(self, request: filesystem_pb2.ReadFileRequest) -> Iterator[Iterator[filesystem_pb2.ReadFileResponse]]:
        with rpc_errors():
            call = self._files.ReadFile(request, timeout=self._transfer_timeout, metadata=self._metadata)
            try:
                yield call
            finally:
                call.cancel()

    def _send(self, upload: Upload) -> EntryInfo:
        with upload, rpc_errors():
            # Not the blocking form of the call: that one could not be cancelled by an interrupt.
            call = self._files.WriteFile.future(upload, timeout=self._transfer_timeout, metadata=self._metadata)
            try:
                return entry_info(call.result().entry)
            finally:
                call.cancel()

    def _repeated(self, attempt: Callable[[], _T]) -> _T:
        for delay_seconds in self._retry.delays_seconds():
            try:
                return attempt()
            except UnavailableError:
                time.sleep(delay_seconds)
        return attempt()

    @contextlib.contextmanager
    def _carried(self, remote_path: str | None, source: bytes, user: str) -> Iterator[None]:
        """Keeps `source` in a file of the sandbox meanwhile, if there is a path for it."""
        if remote_path is None:
            yield
            return
        try:
            self.write_file(source, remote_path, 0o600, user=user)
            yield
        finally:
            with contextlib.suppress(PicoDError):
                self.execute(argv=("rm", "-f", "--", remote_path), user=user)
