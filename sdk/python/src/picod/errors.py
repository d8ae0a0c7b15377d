"""The exceptions of this package, and the one place where a gRPC status becomes one of them.

Two families that never mix: `PicoDError` means that PicoD could not do what was asked, `CommandError` that a command ran and did
not succeed. Errors of local files (a missing upload source, a full local disk) stay what Python raises: `OSError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import grpc

from .connection import instance_in
from .error_details import decode_error_info
from .results import ExecuteResult, OutcomeReason

_STATUS_DETAILS_KEY = "grpc-status-details-bin"
_STDERR_TAIL_CHARACTERS = 2000
_COMMAND_CHARACTERS = 200


class PicoDError(Exception):
    """An RPC failed.

    Attributes:
        code: The gRPC status code.
        message: What failed, in one sentence of the daemon or of gRPC.
        reason: Machine-readable cause in UPPER_SNAKE_CASE from google.rpc.ErrorInfo; empty if the error did not carry one
            (errors made by gRPC itself do not).
        metadata: Details from google.rpc.ErrorInfo, for example `path`.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN
    instance: str = ""
    """The run of the daemon that answered; empty when none did."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode | None = None,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = dict(metadata or {})
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class CancelledError(PicoDError):
    """The call was cancelled. Not `asyncio.CancelledError`, which a cancelled task keeps raising."""

    code = grpc.StatusCode.CANCELLED


class InvalidArgumentError(PicoDError, ValueError):
    """The daemon refuses an argument; the message names it."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(PicoDError, TimeoutError):
    """No answer before the call's deadline. For a command that ran out of its own time see `CommandTimeoutError`."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFoundError(PicoDError):
    """Nothing in the sandbox has that name, or no process has that id or tag."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExistsError(PicoDError):
    """The name, the `id` of a command, or the tag of a process is taken."""

    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDeniedError(PicoDError):
    """The acting user may not do this, or the file system is read-only."""

    code = grpc.StatusCode.PERMISSION_DENIED


class UnauthenticatedError(PicoDError):
    """No access token, or a wrong one."""

    code = grpc.StatusCode.UNAUTHENTICATED


class ResourceExhaustedError(PicoDError):
    """A disk, a quota or a limit of the daemon is full, or a message is larger than the receiver takes."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(PicoDError):
    """The target is of the wrong kind (a directory, a process without input) or not in the state that the call requires."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class AbortedError(PicoDError):
    """Something else changed the file during the call."""

    code = grpc.StatusCode.ABORTED


class OutOfRangeError(PicoDError):
    """The offset lies beyond the end of the file, or of the output of a process."""

    code = grpc.StatusCode.OUT_OF_RANGE


class UnimplementedError(PicoDError):
    """The daemon does not know this method or option."""

    code = grpc.StatusCode.UNIMPLEMENTED


class InternalError(PicoDError):
    """A fault of the daemon; the message carries the request id under which it logged the cause."""

    code = grpc.StatusCode.INTERNAL


class UnavailableError(PicoDError, ConnectionError):
    """The daemon cannot be reached, or the connection broke. What was asked for may have been done."""

    code = grpc.StatusCode.UNAVAILABLE


class DaemonRestartedError(UnavailableError):
    """The daemon was restarted while the call was repeated; whether it ran what was asked for, nobody knows any longer.

    `reason` is INSTANCE_CHANGED. Nothing was repeated.
    """

    def __init__(self) -> None:
        super().__init__(
            "the daemon was restarted after the connection broke: it is unknown whether what was asked for has run",
            reason="INSTANCE_CHANGED",
        )


class DataLossError(PicoDError):
    """The content that arrived is not the content that was sent, or part of a process's output is no longer kept."""

    code = grpc.StatusCode.DATA_LOSS


_CLASS_BY_CODE: dict[grpc.StatusCode, type[PicoDError]] = {cls.code: cls for cls in PicoDError.__subclasses__()}


def error_from_rpc(error: grpc.RpcError) -> PicoDError:
    """Converts what grpc or grpc.aio raised."""
    code = error.code()
    trailers = cast("Iterable[tuple[str, str | bytes]]", error.trailing_metadata() or ())
    details = next((value for key, value in trailers if key == _STATUS_DETAILS_KEY), b"")
    info = decode_error_info(details) if isinstance(details, bytes) else None
    converted = _CLASS_BY_CODE.get(code, PicoDError)(
        error.details() or "",
        code=code,
        reason=info.reason if info else "",
        metadata=info.metadata if info else None,
    )
    # An answer without a message has everything in its trailers.
    converted.instance = instance_in(trailers) or instance_in(cast(grpc.Call, error).initial_metadata())
    return converted


@contextmanager
def rpc_errors() -> Iterator[None]:
    """Raises `PicoDError` in place of the `grpc.RpcError` of the enclosed calls, awaited or not."""
    try:
        yield
    except grpc.RpcError as error:
        raise error_from_rpc(error) from error


class CommandError(Exception):
    """A command ran and did not succeed.

    Attributes:
        result: Everything the daemon reported, with the output until the end.
        command: The command, or "python code" and the like for `run_code`.
        completed: For `execute_commands`: command -> stdout of those that succeeded before.
    """

    def __init__(self, result: ExecuteResult, command: str, completed: Mapping[str, str] | None = None) -> None:
        super().__init__(result, command, completed)
        self.result = result
        self.command = command
        self.completed = dict(completed or {})

    @property
    def stdout(self) -> str:
        """The command's standard output."""
        return self.result.stdout

    @property
    def stderr(self) -> str:
        """The command's standard error."""
        return self.result.stderr

    @property
    def exit_code(self) -> int:
        """The command's exit code."""
        return self.result.exit_code

    def __str__(self) -> str:
        command = self.command if len(self.command) <= _COMMAND_CHARACTERS else self.command[:_COMMAND_CHARACTERS] + "…"
        stderr = self.stderr.strip()[-_STDERR_TAIL_CHARACTERS:]
        return f"{self._failure()}: {command!r}" + (f"\n{stderr}" if stderr else "")

    def _failure(self) -> str:
        outcome = self.result.outcome
        if outcome.reason is OutcomeReason.EXITED:
            return f"command exited with code {self.exit_code}"
        return f"command ended with {outcome.reason.name}, exit code {self.exit_code}" + (
            f" ({outcome.message})" if outcome.message else ""
        )


class CommandTimeoutError(CommandError, TimeoutError):
    """The command's `timeout` passed; the daemon ended it. `stdout` and `stderr` hold what it wrote until then."""


class InterpreterNotFoundError(CommandError):
    """`run_code` found no interpreter of the language in the sandbox."""

    def _failure(self) -> str:
        return "no interpreter in the sandbox"


class OutputTruncatedError(CommandError):
    """The command succeeded, but wrote more than `max_output_bytes`, so the whole stdout cannot be returned.

    `result.stdout` holds the first and the last half of what was kept, `result.stdout_summary` says how much is missing.
    """

    def _failure(self) -> str:
        summary = self.result.stdout_summary
        return (
            f"command succeeded, but {summary.omitted_bytes} of its {summary.total_bytes} bytes of stdout were left out"
            " (raise max_output_bytes, redirect to a file, or use execute() for the head and tail)"
        )
