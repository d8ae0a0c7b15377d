"""What the daemon answers, as plain immutable values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from .v1 import filesystem_pb2, process_pb2


class OutcomeReason(enum.Enum):
    """The one reason why a process ended."""

    UNSPECIFIED = 0
    """Not known to this version of the client."""
    EXITED = 1
    """It exited by itself; the exit code says how."""
    SIGNALED = 2
    """A signal that the daemon did not send ended it."""
    TIMED_OUT = 3
    """Its timeout passed and the daemon ended it."""
    CANCELLED = 4
    """The caller cancelled, its deadline passed, or the daemon shut down."""
    OUT_OF_MEMORY = 5
    """The kernel's out-of-memory killer ended it."""
    SPAWN_FAILED = 6
    """The program could not be started."""
    LOST = 7
    """The daemon lost track of it."""

    @classmethod
    def _missing_(cls, value: object) -> OutcomeReason:
        return cls.UNSPECIFIED


class FileType(enum.Enum):
    """The kind of a directory entry."""

    UNSPECIFIED = 0
    """Not known to this version of the client."""
    FILE = 1
    DIRECTORY = 2
    SYMLINK = 3
    FIFO = 4
    SOCKET = 5
    CHARACTER_DEVICE = 6
    BLOCK_DEVICE = 7

    @classmethod
    def _missing_(cls, value: object) -> FileType:
        return cls.UNSPECIFIED


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    reason: OutcomeReason
    exit_code: int
    signal: str
    """Name of the signal that ended the leader, for example "SIGKILL"; else empty."""
    forced: bool
    """KILL was needed after the grace period."""
    surviving_processes: int
    """Descendants that were alive when a termination gave up on them."""
    message: str
    """One sentence for a person; empty for EXITED."""


@dataclass(frozen=True)
class OutputSummary:
    """What happened to one output stream."""

    total_bytes: int
    """Bytes that the command wrote."""
    omitted_bytes: int
    """Bytes left out between the kept head and the kept tail."""
    omitted_lines: int
    """Newlines among the bytes left out."""
    utf8_replaced: bool
    """Bytes that are not UTF-8 were replaced by U+FFFD."""


@dataclass(frozen=True)
class ResourceUsage:
    """What the process and the descendants it waited for used."""

    user_time: timedelta
    system_time: timedelta
    max_rss_bytes: int
    """Largest resident set."""


@dataclass(frozen=True)
class ResourceLimits:
    """Limits set with setrlimit(2) before the program starts; None inherits the daemon's."""

    memory_bytes: int | None = None
    """Address space of each process."""
    cpu_seconds: int | None = None
    """CPU time of each process."""
    processes: int | None = None
    """Processes and threads of the user."""
    open_files: int | None = None
    """Open file descriptors of each process."""
    file_size_bytes: int | None = None
    """Size of a file that may be written."""


@dataclass(frozen=True)
class ExecuteResult:
    """How one command went."""

    stdout: str
    stderr: str
    exit_code: int
    """The command's own; 128+n when signal n ended it; 124 when its time was up; 126 or 127 when it could not start."""
    outcome: Outcome
    stdout_summary: OutputSummary
    stderr_summary: OutputSummary
    duration: timedelta
    """From the start of the process to its end."""
    usage: ResourceUsage
    process_id: str
    """The request's `id`, else one made by the daemon."""

    @property
    def ok(self) -> bool:
        """The command exited by itself with code 0."""
        return self.outcome.reason is OutcomeReason.EXITED and self.exit_code == 0


@dataclass(frozen=True)
class EntryInfo:
    """One file, directory or other entry of the sandbox."""

    name: str
    """Last component of the path."""
    type: FileType
    path: str
    """The absolute path as it was asked for, `~` expanded, symbolic links not resolved."""
    size: int
    """Bytes."""
    mode: int
    """Permission bits, 0 to 0o7777."""
    permissions: str
    """The ten characters of `ls -l`, for example "-rw-r--r--"."""
    owner: str
    group: str
    modified_time: datetime
    """In UTC, to the microsecond."""
    symlink_target: str | None
    """For a symbolic link that was not followed; else None."""
    etag: str
    """Opaque version of content and attributes."""
    uid: int = 0
    gid: int = 0
    raw_name: bytes | None = None
    """The bytes of a name that is not UTF-8; else None."""
    accessed_time: datetime | None = None
    """In UTC, to the microsecond."""
    hard_links: int = 0
    """Names that the file has."""
    xattrs: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    """The extended attributes that begin with "user."; only of `stat`, when they are asked for."""


def execute_result(response: process_pb2.ExecuteResponse) -> ExecuteResult:
    """Converts the answer of Execute."""
    return ExecuteResult(
        stdout=response.stdout,
        stderr=response.stderr,
        exit_code=response.exit_code,
        outcome=outcome(response.outcome),
        stdout_summary=_output_summary(response.stdout_summary),
        stderr_summary=_output_summary(response.stderr_summary),
        duration=response.duration.ToTimedelta(),
        usage=resource_usage(response.usage),
        process_id=response.process_id,
    )


def entry_info(entry: filesystem_pb2.EntryInfo) -> EntryInfo:
    """Converts an entry of any filesystem answer."""
    return EntryInfo(
        name=entry.name,
        type=FileType(entry.type),
        path=entry.path,
        size=entry.size,
        mode=entry.mode,
        permissions=entry.permissions,
        owner=entry.owner,
        group=entry.group,
        modified_time=entry.modified_time.ToDatetime(tzinfo=timezone.utc),
        symlink_target=entry.symlink_target if entry.HasField("symlink_target") else None,
        etag=entry.etag,
        uid=entry.uid,
        gid=entry.gid,
        raw_name=entry.raw_name if entry.HasField("raw_name") else None,
        accessed_time=entry.accessed_time.ToDatetime(tzinfo=timezone.utc) if entry.HasField("accessed_time") else None,
        hard_links=entry.hard_links,
        xattrs=dict(entry.xattrs),
    )


def outcome(message: process_pb2.Outcome) -> Outcome:
    """Converts the outcome in any answer."""
    return Outcome(
        reason=OutcomeReason(message.reason),
        exit_code=message.exit_code,
        signal=message.signal,
        forced=message.forced,
        surviving_processes=message.surviving_processes,
        message=message.message,
    )


def resource_usage(message: process_pb2.ResourceUsage) -> ResourceUsage:
    """Converts the usage in any answer."""
    return ResourceUsage(
        user_time=message.user_time.ToTimedelta(),
        system_time=message.system_time.ToTimedelta(),
        max_rss_bytes=message.max_rss_bytes,
    )


def _output_summary(summary: process_pb2.OutputSummary) -> OutputSummary:
    return OutputSummary(
        total_bytes=summary.total_bytes,
        omitted_bytes=summary.omitted_bytes,
        omitted_lines=summary.omitted_lines,
        utf8_replaced=summary.utf8_replaced,
    )
