"""Builds request messages from the arguments of the clients' methods."""

from __future__ import annotations

import math
import secrets
import signal as signals
from collections.abc import Mapping, Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from .processes import OutputOffsets, ProcessState
from .results import ResourceLimits
from .v1 import filesystem_pb2, process_pb2

END_SECONDS = 1.0
"""How long the call that ends a forsaken command may take: enough to reach the daemon, which then goes on by itself."""


def execute_request(
    command: str,
    *,
    argv: Sequence[str],
    timeout: float,
    cwd: str,
    env: Mapping[str, str] | None,
    user: str,
    stdin: str | bytes,
    max_output_bytes: int | None,
    id: str,  # noqa: A002 (the field's name)
    limits: ResourceLimits | None,
) -> process_pb2.ExecuteRequest:
    """Leaves out what was not given, so that the daemon's defaults apply."""
    return process_pb2.ExecuteRequest(
        command=command,
        argv=argv,
        timeout=timeout,
        cwd=cwd,
        env=env,
        user=user,
        stdin=to_bytes(stdin),
        max_output_bytes=max_output_bytes,
        id=id,
        limits=_limits(limits),
    )


def start_request(
    command: str,
    *,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str] | None,
    user: str,
    pty: tuple[int, int] | None,
    stdin: bool,
    timeout: float,
    limits: ResourceLimits | None,
    id: str,  # noqa: A002 (the field's name)
    tag: str,
    label: str,
    backpressure: bool,
    login: bool,
    session_id: str,
    keepalive_interval: float,
) -> process_pb2.StartRequest:
    """Makes an id when none is given, so that the request can be repeated.

    Raises:
        ValueError: The timeout is not a finite number.
    """
    return process_pb2.StartRequest(
        command=command,
        argv=argv,
        cwd=cwd,
        env=env,
        user=user,
        pty=pty_size(*pty) if pty else None,
        stdin=stdin,
        timeout=finite(timeout),
        limits=_limits(limits),
        id=id or new_process_id(),
        tag=tag,
        label=label,
        backpressure=backpressure,
        follower_id=new_follower_id() if backpressure else "",
        keepalive_interval=duration(keepalive_interval),
        login=login,
        session_id=session_id,
    )


def new_process_id() -> str:
    """Makes an id that nobody else has."""
    return f"proc_{secrets.token_hex(12)}"


def new_follower_id() -> str:
    """Makes a name for a reader that the process waits for."""
    return secrets.token_hex(12)


def attach_request(
    process_id: str, offsets: OutputOffsets | None, *, follower_id: str, keepalive_interval: float
) -> process_pb2.AttachRequest:
    """Begins at the offsets, or with what is written from now on. The process waits for a reader that has an id."""
    request = process_pb2.AttachRequest(
        process=process_pb2.ProcessSelector(id=process_id),
        from_end=offsets is None,
        backpressure=bool(follower_id),
        follower_id=follower_id,
        keepalive_interval=duration(keepalive_interval),
    )
    if offsets is not None:
        # `from` is a keyword of Python.
        getattr(request, "from").CopyFrom(process_pb2.OutputOffsets(**vars(offsets)))
    return request


def list_request(tag: str, state: ProcessState | None) -> process_pb2.ListProcessesRequest:
    """Builds the request of ListProcesses."""
    return process_pb2.ListProcessesRequest(tag=tag, state=state.value if state else 0)  # type: ignore[arg-type] # an int


def selector(process_id: str, tag: str) -> process_pb2.ProcessSelector:
    """Names one process.

    Raises:
        ValueError: Neither or both are given.
    """
    if bool(process_id) == bool(tag):
        raise ValueError("give either the id or the tag of a process")
    return process_pb2.ProcessSelector(id=process_id) if process_id else process_pb2.ProcessSelector(tag=tag)


def pty_size(cols: int, rows: int) -> process_pb2.PtySize:
    """Builds the size of a terminal."""
    return process_pb2.PtySize(cols=cols, rows=rows)


def signal_name(signal: str | int) -> str:
    """A member of `signal.Signals` goes by its name, because numbers differ among systems."""
    return signal.name if isinstance(signal, signals.Signals) else str(signal)


def duration(seconds: float) -> Duration:
    """Converts seconds."""
    message = Duration()
    message.FromTimedelta(timedelta(seconds=seconds))
    return message


def finite(timeout: float) -> float:
    """Returns the timeout.

    Raises:
        ValueError: It is not a finite number.
    """
    if not math.isfinite(timeout):
        raise ValueError(f"timeout must be a finite number of seconds, 0 for none: {timeout}")
    return timeout


def execute_deadline_seconds(timeout: float, slack: float) -> float | None:
    """The command's own timeout and some slack, so that the daemon's answer, with the output so far, comes first.

    Raises:
        ValueError: The timeout is not a finite number.
    """
    return timeout + slack if finite(timeout) > 0 else None


def stat_request(path: str, *, user: str, follow_symlinks: bool, xattrs: bool = False) -> filesystem_pb2.StatRequest:
    """Builds the request of Stat."""
    return filesystem_pb2.StatRequest(path=path, user=user, follow_symlinks=follow_symlinks, xattrs=xattrs)


def read_file_request(
    path: str, *, offset: int | None = None, length: int | None = None, user: str, checksum: bool, if_etag: str = ""
) -> filesystem_pb2.ReadFileRequest:
    """Leaves out the range when none was given."""
    return filesystem_pb2.ReadFileRequest(path=path, offset=offset, length=length, user=user, checksum=checksum, if_etag=if_etag)


def to_bytes(content: str | bytes) -> bytes:
    """Text goes to the sandbox as UTF-8."""
    return content.encode("utf-8") if isinstance(content, str) else content


def _limits(limits: ResourceLimits | None) -> process_pb2.ResourceLimits | None:
    return process_pb2.ResourceLimits(**vars(limits)) if limits else None
