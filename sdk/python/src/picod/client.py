"""The blocking client."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import grpc

from .acknowledgements import Acknowledgements
from .code import resolve_program
from .commands import stdout_of
from .connection import DEFAULT_PORT, ChannelArguments, Metadata, TlsOptions, open_channel, resolve_connection
from .directory_transfer import DirectoryDownload, DirectoryUpload, download_directory, upload_directory
from .download import Content
from .errors import CancelledError, CommandError, DeadlineExceededError, PicoDError, UnavailableError, rpc_errors
from .file_download import DOWNLOAD_PARTS, DownloadOptions, download_file
from .file_upload import UPLOAD_PARTS, UploadOptions, upload_file
from .files import FileMethods
from .once import HEALTH_CHECK, Instance, Once
from .process import Process, ProcessWatch
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
from .streams import Follower, Stream, Watchdog
from .sync import SyncOptions, SyncResult, sync_directory
from .transfer import Transfer
from .upload import Upload, upload_of_content
from .v1 import filesystem_pb2, filesystem_pb2_grpc, process_pb2, process_pb2_grpc
from .v1.process_pb2 import AcknowledgeOutputRequest

_T = TypeVar("_T")


class PicoDClient(FileMethods):
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
        retry: How often what can be repeated safely is repeated while the daemon is unavailable; None never does. The methods
            say which they are; `write_file` never is.
        repeat_commands: Repeat commands too: each gets an id, and one whose answer was lost with its connection is run once and
            its answer is fetched. A command that is not waited for any longer is still killed, unless the daemon cannot be
            reached, or this program is killed: then its `timeout` ends it. Without, a command ends with its connection.
        keepalive_interval: Seconds after which the daemon sends a sign of life on a stream without output, 1 to 30. A
            connection on which nothing arrives for 2.5 times as long is taken for dead and made again.
        channel_arguments: Further gRPC channel arguments; they win over those of this package.

    Raises:
        ValueError: The port, the token or the keepalive interval is malformed, or only one half of a client certificate is given.
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
        repeat_commands: bool = True,
        keepalive_interval: float = 10.0,
        channel_arguments: ChannelArguments = (),
    ) -> None:
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
        self._watchdog = Watchdog()
        self._own_channels: weakref.WeakSet[grpc.Channel] = weakref.WeakSet()
        self._channel = open_channel(connection)
        self._files = filesystem_pb2_grpc.FilesystemServiceStub(self._channel)
        self._processes = process_pb2_grpc.ProcessServiceStub(self._channel)

    def close(self) -> None:
        """Closes the connection; calls in flight end with `CancelledError`, their commands are killed.

        Processes made by `start` run on.
        """
        self._closing = True
        with contextlib.suppress(ValueError):  # It is closed.
            for call in [self._ending_call(process_id) for process_id in list(self._ids_to_end)]:
                call.exception()
        self._channel.close()
        for channel in list(self._own_channels):
            channel.close()

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

        A call whose answer was lost is repeated as `retry` says, and the command runs once (but see `repeat_commands`).
        Interrupting the call kills the command. With an `id` it runs on, until `stop_process` or its `timeout` ends it, and the
        same call with the same `id` finds it.

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
            id: Idempotency key, 1 to 128 of the characters A-Z a-z 0-9 . _ : -. The same request with the same id gives the
                one result of the one run, as long as that daemon lives and for 10 minutes after the end.
            limits: Resource limits of the process.

        Raises:
            InvalidArgumentError: Neither or both of `command` and `argv`; a malformed or unknown value.
            NotFoundError: `cwd` does not exist.
            FailedPreconditionError: `cwd` is not a directory.
            PermissionDeniedError: The user may not enter `cwd`, or the daemon may not become that user.
            AlreadyExistsError: The `id` was used for a different command.
            DaemonRestartedError: The daemon was restarted after the connection broke: the command may have run, in part.
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
            id=id or (new_process_id() if self._repeat_commands else ""),
            limits=limits,
        )

        def attempt(metadata: Metadata) -> ExecuteResult:
            return execute_result(self._unary(self._processes.Execute, request, deadline, metadata))

        if not request.id:
            return attempt(())
        if id:
            return self._once(attempt)
        # With an id the daemon lets the command run on when the call ends, so it must be told.
        with self._ending(request.id):
            return self._once(attempt)

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

    def start(
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
    ) -> Process:
        """Starts a process that outlives the call, this client and its program, and returns it as soon as it runs.

        Repeated as `retry` says: a start whose answer was lost finds the process that it started.

        Args:
            command: Handed to the user's shell with -c. Exactly one of `command` and `argv` is required, except that with
                `pty` both may be missing: the user's shell.
            argv: Program and arguments, run without a shell.
            cwd: Working directory. Default: the daemon's.
            env: Added to the daemon's small default environment.
            user: Name or numeric id of the user to run as. Default: the daemon's.
            pty: Columns and rows of a terminal, each 1 to 65535. Its output is one stream, "pty". Default: none.
            stdin: Keep standard input open for `write`. Otherwise, and without `pty`, it is /dev/null.
            timeout: Seconds until the daemon ends it (TIMED_OUT, exit code 124); 0 for none.
            limits: Resource limits of the process.
            id: Idempotency key, 1 to 128 of the characters A-Z a-z 0-9 . _ : -. A process of the same specification that has it,
                running or ended, is returned instead of starting one. Default: one that is made up.
            tag: A name to find it by, unique among live processes; at most 128 bytes.
            label: Free text for people; at most 1024 bytes.
            backpressure: Let the process wait for this reader, instead of trimming output (beyond 1 MiB per stream) that it has
                not taken; also while its connection is broken, for up to 30 s. `close` ends it.
            login: Run a login shell.
            session_id: Groups processes for those who list them; at most 128 bytes.

        Raises:
            InvalidArgumentError: Neither or both of `command` and `argv`; a malformed or unknown value.
            NotFoundError: `cwd` does not exist.
            FailedPreconditionError: `cwd` is not a directory.
            PermissionDeniedError: The user may not enter `cwd`, or the daemon may not become that user.
            AlreadyExistsError: The `id` belongs to a process of another specification, or the `tag` to another live process.
            DaemonRestartedError: The daemon was restarted after the connection broke: the process may have been started there.
            ResourceExhaustedError: Too many processes.
            ValueError: The timeout is not finite.
        """
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
        stream, info = self._once(lambda metadata: self._begin("Start", request, metadata))
        return self._process_of(stream, info, OutputOffsets(), follower_id=request.follower_id, stop_on_exit=True)

    def attach(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        from_offsets: OutputOffsets | None = None,
        from_end: bool = False,
        backpressure: bool = False,
    ) -> Process:
        """Finds a process, running or ended, to read its output and to control it. Repeated as `retry` says.

        Args:
            id: Its id. Exactly one of `id` and `tag` is required.
            tag: Its tag: the live process that has it, else the one that ended last.
            from_offsets: Where its output begins, for example the `offsets` of another reader. Default: with the first byte
                ever written. What is no longer kept is reported as trimmed.
            from_end: Begin with what is written from now on.
            backpressure: As for `start`.

        Raises:
            NotFoundError: There is no such process.
            OutOfRangeError: An offset lies beyond what was written; without `backpressure` raised by iterating.
            ResourceExhaustedError: It has too many readers; likewise.
            ValueError: Neither or both of `id` and `tag`, or both of `from_offsets` and `from_end`.
        """
        if from_offsets and from_end:
            raise ValueError("give either from_offsets or from_end")
        info = self.get_process(id, tag=tag)
        offsets = info.written if from_end else from_offsets or OutputOffsets()
        stream = None
        follower_id = new_follower_id() if backpressure else ""
        if follower_id:
            request = attach_request(info.id, offsets, follower_id=follower_id, keepalive_interval=self._keepalive_interval)
            stream, info = self._repeated(lambda: self._begin("Attach", request))
        return self._process_of(stream, info, offsets, follower_id=follower_id, stop_on_exit=False)

    def get_process(self, id: str = "", *, tag: str = "") -> ProcessInfo:  # noqa: A002 (the field's name)
        """Describes one process, running or ended. Repeated as `retry` says.

        Args:
            id: As for `attach`.
            tag: As for `attach`.

        Raises:
            NotFoundError: There is no such process.
            ValueError: Neither or both of `id` and `tag`.
        """
        request = process_pb2.GetProcessRequest(process=selector(id, tag))
        return process_info(self._repeated(lambda: self._process_call("GetProcess", request)).process)

    def list_processes(self, tag: str = "", state: ProcessState | None = None) -> list[ProcessInfo]:
        """Describes all processes that are kept, oldest first. Repeated as `retry` says.

        Args:
            tag: Only those with this tag.
            state: Only those in this state.
        """
        request = list_request(tag, state)
        response = self._repeated(lambda: self._process_call("ListProcesses", request))
        return [process_info(process) for process in response.processes]

    def watch_processes(self) -> ProcessWatch:
        """Returns an iterator of what happens to processes from now on, until it is closed. Repeated as `retry` says."""
        return ProcessWatch._open(self)

    def update_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        new_tag: str | None = None,
        new_label: str | None = None,
    ) -> ProcessInfo:
        """Changes tag and label. Repeated as `retry` says.

        Args:
            id: As for `attach`.
            tag: As for `attach`: the tag that it has.
            new_tag: The tag to give it; an empty one removes it, None keeps it.
            new_label: Likewise.

        Raises:
            NotFoundError: There is no such process.
            AlreadyExistsError: Another live process has the tag.
            ValueError: Neither or both of `id` and `tag`.
        """
        request = process_pb2.UpdateProcessRequest(process=selector(id, tag), tag=new_tag, label=new_label)
        return process_info(self._repeated(lambda: self._process_call("UpdateProcess", request)).process)

    def send_signal(
        self,
        signal: str | int,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        leader_only: bool = False,
    ) -> None:
        """Sends a signal to the process group. Never repeated.

        Args:
            signal: "SIGTERM", "TERM", a number, or a member of `signal.Signals`, which goes by its name.
            id: As for `attach`.
            tag: As for `attach`.
            leader_only: To the leader alone.

        Raises:
            NotFoundError: There is no such process.
            FailedPreconditionError: It has ended.
            InvalidArgumentError: There is no such signal.
            ValueError: Neither or both of `id` and `tag`.
        """
        request = process_pb2.SendSignalRequest(process=selector(id, tag), signal=signal_name(signal), leader_only=leader_only)
        self._process_call("SendSignal", request)

    def stop_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        grace: float | None = None,
    ) -> StopResult:
        """Ends a process and everything that descends from it, and returns when they are gone. Repeated as `retry` says.

        Of a process that has ended it reaches the background children that were left.

        Args:
            id: As for `attach`; or the `id` of a command of `execute` that runs.
            tag: As for `attach`.
            grace: Seconds between TERM and KILL; 0 kills at once. Default: the daemon's `--kill-grace`.

        Raises:
            NotFoundError: There is no such process.
            DeadlineExceededError: It took longer than `grace` and the client's `request_timeout`; it is being ended all the same.
            ValueError: Neither or both of `id` and `tag`.
        """
        request = process_pb2.StopProcessRequest(process=selector(id, tag), grace=None if grace is None else duration(grace))
        return stop_result(self._repeated(lambda: self._process_call("StopProcess", request, grace or 0)))

    def delete_process(
        self,
        id: str = "",  # noqa: A002 (the field's name)
        *,
        tag: str = "",
        stop: bool = False,
    ) -> None:
        """Forgets an ended process and its output. Never repeated.

        Args:
            id: As for `attach`.
            tag: As for `attach`.
            stop: End it first when it runs.

        Raises:
            NotFoundError: There is no such process.
            FailedPreconditionError: It runs, and `stop` is not asked for.
            ValueError: Neither or both of `id` and `tag`.
        """
        self._process_call("DeleteProcess", process_pb2.DeleteProcessRequest(process=selector(id, tag), stop=stop))

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
        progress: ProgressOption = False,
        *,
        user: str = "",
        checksum: bool = True,
        sync: bool = False,
        must_not_exist: bool = False,
        if_etag: str = "",
        parts: int = UPLOAD_PARTS,
    ) -> EntryInfo:
        """Stores a local file in the sandbox, as a whole or not at all, with one chunk of each part in memory.

        Goes on, as `retry` says, where a broken connection has left it; a daemon that was restarted gets all of it again.

        Args:
            local_path: A regular file.
            remote_path: As for `write_file`.
            mode: As for `write_file`; the local file's mode is not carried over.
            progress: Show a progress bar on stderr, which needs tqdm; or a function that is called with the bytes transferred
                so far and in all.
            user: As for `write_file`.
            checksum: Verify the SHA-256, for which the local file is read twice, at the same time. Otherwise only its size is.
            sync: Let it survive a power loss of the sandbox.
            must_not_exist: The name must be free.
            if_etag: The file that is replaced must have exactly this `EntryInfo.etag`.
            parts: Parts of a large file that are sent at a time.

        Returns:
            The file as it is now.

        Raises:
            OSError: The local file cannot be read.
            ValueError: It is not a regular file.
            ImportError: `progress=True` without tqdm.
            AlreadyExistsError: `must_not_exist`, and it does.
            DaemonRestartedError: With `must_not_exist` or `if_etag`: the daemon was restarted when all had been sent. Whether it
                stored the file before is unknown.
            PicoDError: As `write_file`; FailedPreconditionError when `if_etag` is not met; InvalidArgumentError or DataLossError
                when the local file changes meanwhile.
        """
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
        return self._transferred(lambda transfer: upload_file(transfer, local_path, options, progress))

    def download_file(
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
        """Puts a file of the sandbox in place of a local one, with one chunk of each part in memory.

        Goes on, as `retry` says, near where a broken connection has left it; a file that has changed meanwhile is fetched anew,
        so that it is always of one version. The content goes to a temporary file beside `local_path`, which takes the name once
        everything is verified; after any error the local file is what it was. An existing file keeps its permission bits; a new
        one gets those of the umask.

        Args:
            remote_path: As for `read_file`.
            local_path: Destination; its directory must exist. Symbolic links are followed.
            progress: As for `upload_file`.
            user: As for `read_file`.
            checksum: Compare the SHA-256 of what was sent and what arrived.
            sync: Let it survive a power loss of this machine.
            parts: Parts of a large file that are fetched at a time.

        Raises:
            OSError: The local file cannot be written.
            ValueError: The local path exists and is not a regular file.
            ImportError: `progress=True` without tqdm.
            PicoDError: As `read_file`.
        """
        options = DownloadOptions(remote_path, user=user, checksum=checksum, sync=sync, parts=parts)
        self._transferred(lambda transfer: download_file(transfer, local_path, options, progress))

    def upload_dir(
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
        """Stores a local directory with all that is in it, as one stream. Repeated as `retry` says, as a whole.

        Modes, times and links are kept. Files replace what has their name, each as a whole; what else is there stays.

        Args:
            local_path: A directory.
            remote_path: As for `write_file`; made when it is missing.
            progress: As for `upload_file`; the total is not known.
            atomic: Replace the directory as a whole, or change nothing.
            exclude: Patterns of what is left out, as lines of a .gitignore file.
            ignore_files: Names of files with such lines, for example ".gitignore" (then `.git` is left out too).
            preserve_owner: Keep owners and groups, as root. Default: all of it belongs to the user.
            user: As for `stat`.

        Raises:
            OSError: Something local cannot be read.
            ValueError: A file shrank meanwhile.
            PicoDError: As `write_file`; FailedPreconditionError when a directory is in the place of a file.
        """
        metadata = filesystem_pb2.WriteArchiveMetadata(path=remote_path, user=user, atomic=atomic, preserve_owner=preserve_owner)
        return self._transferred(
            lambda transfer: upload_directory(
                transfer, local_path, metadata, exclude=exclude, ignore_files=ignore_files, progress=progress
            )
        )

    def download_dir(
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
        """Fetches a directory of the sandbox with all that is in it, as one stream. Repeated as `retry` says, as a whole.

        It arrives in a directory beside `local_path`, which takes its name when all is verified. When `local_path` exists, its
        files are replaced then, each as a whole, and what else is in it stays. The sandbox is not trusted: nothing outside is
        written, set-id bits and owners are not taken over, devices are left out. Symbolic links are made as they are, wherever
        they point.

        Args:
            remote_path: As for `stat`; a directory.
            local_path: Its parent must exist.
            progress: As for `upload_dir`.
            include: Globs, as for `find`.
            exclude: Likewise.
            gitignore: As for `find`.
            skip_unreadable: Pass over what cannot be read. Default: that is an error.
            user: As for `stat`.

        Raises:
            OSError: Something local cannot be written.
            ValueError: The archive is malicious.
            NotFoundError: Nothing has that name.
            PermissionDeniedError: Something cannot be read, unless `skip_unreadable`.
            AbortedError: A file shrank meanwhile.
            DataLossError: Something else arrived than was sent.
        """
        request = filesystem_pb2.ReadArchiveRequest(
            path=remote_path, user=user, include=include, exclude=exclude, gitignore=gitignore, skip_unreadable=skip_unreadable
        )
        return self._transferred(lambda transfer: download_directory(transfer, local_path, request, progress))

    def sync_dir(
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
        """Makes a directory of the sandbox like a local one, and sends only what differs.

        Files differ in size, time of modification (to the microsecond) or mode, symbolic links in where they point. When the
        connection breaks it compares anew, as `retry` says; large files go on where they were.

        Args:
            local_path: A directory.
            remote_path: As for `upload_dir`.
            progress: As for `upload_file`.
            delete: Remove what is not there locally, except for what is ignored.
            checksum: Compare the SHA-256 instead of the time, for which remote files of the same size are read.
            exclude: As for `upload_dir`.
            ignore_files: As for `upload_dir`.
            user: As for `stat`.

        Returns:
            How many were created, updated, deleted (a directory counts as one) and left as they were.

        Raises: as `upload_dir`.
        """
        options = SyncOptions(
            remote_path, user=user, delete=delete, checksum=checksum, exclude=tuple(exclude), ignore_files=tuple(ignore_files)
        )
        return self._transferred(lambda transfer: sync_directory(transfer, local_path, options, progress))

    @contextlib.contextmanager
    def _ending(self, process_id: str) -> Iterator[None]:
        """Ends the command when its answer is not waited for any longer."""
        self._ids_to_end.add(process_id)
        try:
            yield
        except BaseException:
            with contextlib.suppress(ValueError):  # The client is closed.
                # For a moment only: once the daemon knows, ending it goes on by itself.
                self._ending_call(process_id).exception()
            raise
        else:
            if self._closing:
                raise CancelledError("the client was closed")
        finally:
            self._ids_to_end.discard(process_id)

    def _ending_call(self, process_id: str) -> Any:  # noqa: ANN401 (untyped stubs)
        request = process_pb2.StopProcessRequest(process=selector(process_id, ""))
        return self._processes.StopProcess.future(request, timeout=END_SECONDS, metadata=self._metadata)

    def _begin(self, method: str, request: object, metadata: Metadata = ()) -> tuple[Stream[Any], ProcessInfo]:
        """Opens a stream and receives its first message, `started`."""
        stream: Stream[Any] = self._open_stream(method, request, None, False, metadata)
        try:
            return stream, process_info(stream.receive(self._request_timeout).event.started.process)
        except UnavailableError:
            stream.close()
            if stream.silent:
                raise DeadlineExceededError(f"no answer within {self._request_timeout} s") from None
            raise
        except BaseException:
            stream.close()
            raise

    def _process_of(
        self,
        stream: Stream[Any] | None,
        info: ProcessInfo,
        offsets: OutputOffsets,
        *,
        follower_id: str,
        stop_on_exit: bool,
    ) -> Process:
        # Only what holds the process back stays open: iterating opens it again, and open streams are limited.
        if stream is not None and not follower_id:
            stream.close()
            stream = None
        return Process(self, info, offsets, follower_id=follower_id, stop_on_exit=stop_on_exit, stream=stream)

    def _follow(
        self,
        request: Callable[[], object],
        deadline: float | None = None,
        *,
        method: str = "Attach",
        stream: Stream[Any] | None = None,
    ) -> Follower[Any]:
        """Follows a stream that `request` opens each time where its reader is."""
        return Follower(
            lambda own_connection, timeout: self._open_stream(method, request(), timeout, own_connection),
            silence_seconds(self._keepalive_interval),
            self._retry,
            deadline,
            stream,
        )

    def _follow_events(self) -> Follower[process_pb2.WatchProcessesResponse]:
        request = process_pb2.WatchProcessesRequest(keepalive_interval=duration(self._keepalive_interval))
        return self._follow(lambda: request, method="WatchProcesses")

    def _open_stream(
        self, method: str, request: object, timeout: float | None, own_connection: bool, metadata: Metadata = ()
    ) -> Stream[Any]:
        channel = open_channel(self._connection) if own_connection else None
        if channel:
            self._own_channels.add(channel)
        if method == "WatchDirectory":
            stub: Any = filesystem_pb2_grpc.FilesystemServiceStub(channel) if channel else self._files
        else:
            stub = process_pb2_grpc.ProcessServiceStub(channel) if channel else self._processes
        with rpc_errors():
            call = getattr(stub, method)(request, timeout=timeout, metadata=self._metadata + metadata)
        return Stream(call, self._watchdog, channel)

    def _process_call(self, method: str, request: object, extra_seconds: float = 0, metadata: Metadata = ()) -> Any:  # noqa: ANN401 (untyped stubs)
        timeout = None if self._request_timeout is None else self._request_timeout + extra_seconds
        return self._unary(getattr(self._processes, method), request, timeout, metadata)

    def _unary(
        self,
        method: Any,  # noqa: ANN401 (untyped stubs)
        request: object,
        timeout: float | None,
        metadata: Metadata = (),
    ) -> Any:  # noqa: ANN401
        with rpc_errors():
            return method(request, timeout=timeout, metadata=self._metadata + metadata)

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

    def _transferred(self, run: Callable[[Transfer], _T]) -> _T:
        return run(Transfer(self._files, self._metadata, self._transfer_timeout, self._retry))

    def _once(self, attempt: Callable[[Metadata], _T]) -> _T:
        """Repeats what the daemon does once, however often it is asked to."""
        once = Once(self._instance, self._retry)
        while True:
            try:
                if once.must_ask:
                    self._ask_instance()
                return attempt(once.metadata())
            except PicoDError as error:
                delay_seconds = once.seconds_after(error)
            time.sleep(delay_seconds)

    def _ask_instance(self) -> None:
        with rpc_errors():
            check: Any = self._channel.unary_unary(HEALTH_CHECK)
            _, call = check.with_call(b"", timeout=self._request_timeout, metadata=self._metadata)
        self._instance.hear(call.initial_metadata())

    def _acknowledge(self, acknowledgements: Acknowledgements, request: AcknowledgeOutputRequest | None) -> None:
        """Sends a word without waiting, and behind it what had to wait for it."""
        if request is None:
            return
        with contextlib.suppress(ValueError):  # The client is closed.
            call = self._processes.AcknowledgeOutput.future(request, timeout=self._request_timeout, metadata=self._metadata)
            call.add_done_callback(lambda _: self._acknowledge(acknowledgements, acknowledgements.answered()))

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
