"""Builds request messages from the arguments of the clients' methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .results import ResourceLimits
from .v1 import filesystem_pb2, process_pb2


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
        limits=process_pb2.ResourceLimits(**vars(limits)) if limits else None,
    )


def execute_deadline_seconds(timeout: float, slack: float) -> float | None:
    """The command's own timeout and some slack, so that the daemon's answer, with the output so far, comes first.

    Raises:
        ValueError: The timeout is not a finite number.
    """
    if not math.isfinite(timeout):
        raise ValueError(f"timeout must be a finite number of seconds, 0 for none: {timeout}")
    return timeout + slack if timeout > 0 else None


def stat_request(path: str, *, user: str, follow_symlinks: bool) -> filesystem_pb2.StatRequest:
    """Builds the request of Stat."""
    return filesystem_pb2.StatRequest(path=path, user=user, follow_symlinks=follow_symlinks)


def read_file_request(
    path: str, *, offset: int | None = None, length: int | None = None, user: str, checksum: bool
) -> filesystem_pb2.ReadFileRequest:
    """Leaves out the range when none was given."""
    return filesystem_pb2.ReadFileRequest(path=path, offset=offset, length=length, user=user, checksum=checksum)


def to_bytes(content: str | bytes) -> bytes:
    """Text goes to the sandbox as UTF-8."""
    return content.encode("utf-8") if isinstance(content, str) else content
