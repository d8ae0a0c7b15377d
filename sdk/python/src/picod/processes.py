"""What the daemon says about long-lived processes, as plain immutable values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from .results import Outcome, OutcomeReason, ResourceUsage, outcome, resource_usage
from .v1 import process_pb2


class ProcessState(enum.Enum):
    """Where a process is in its life."""

    UNSPECIFIED = 0
    """Not known to this version of the client."""
    RUNNING = 1
    STOPPING = 2
    """It is being ended."""
    ENDED = 3

    @classmethod
    def _missing_(cls, value: object) -> ProcessState:
        return cls.UNSPECIFIED


class ProcessEventKind(enum.Enum):
    """What happened to a process."""

    STARTED = "started"
    UPDATED = "updated"
    """Its tag or label changed."""
    ENDED = "ended"
    DELETED = "deleted"
    """Its record was deleted, its retention is over, or the daemon was restarted."""


@dataclass(frozen=True)
class OutputOffsets:
    """Positions in the output streams of a process, in bytes since its start."""

    stdout: int = 0
    stderr: int = 0
    pty: int = 0


@dataclass(frozen=True)
class ProcessInfo:
    """One process, running or ended, as it was when the daemon answered."""

    id: str
    tag: str
    label: str
    state: ProcessState
    pid: int
    """Of the leader; it may be another process's once this one has ended. 0 when it could not be started."""
    command: str
    argv: tuple[str, ...]
    cwd: str
    user: str
    pty: tuple[int, int] | None
    """Columns and rows of its terminal; None without one."""
    started_at: datetime
    """In UTC."""
    ended_at: datetime | None
    """In UTC; None while it runs."""
    outcome: Outcome | None
    """How it ended; None while it runs."""
    usage: ResourceUsage | None
    """None while it runs."""
    written: OutputOffsets
    """Bytes written so far."""
    kept_from: OutputOffsets
    """Oldest bytes that can still be read."""
    live_processes: int
    """Processes alive in its tree, the leader included; counted by `get_process` and `list_processes`."""
    input_bytes: int
    """Bytes of input accepted so far."""
    session_id: str
    """As given to `start`."""


@dataclass(frozen=True)
class ProcessResult:
    """How a process went."""

    outcome: Outcome
    exit_code: int
    """The program's own; 128+n when signal n ended it; 124 when its time was up; 126 or 127 when it could not start."""
    duration: timedelta
    """From its start to its end."""
    usage: ResourceUsage

    @property
    def ok(self) -> bool:
        """The program exited by itself with code 0."""
        return self.outcome.reason is OutcomeReason.EXITED and self.exit_code == 0


@dataclass(frozen=True)
class StopResult:
    """What `stop` did."""

    process: ProcessInfo | None
    """None when it was a command of `execute`."""
    forced: bool
    """KILL was needed after the grace period."""
    surviving_processes: int
    """Processes that could not be ended."""


@dataclass(frozen=True)
class ProcessEvent:
    """Something that happened to a process."""

    kind: ProcessEventKind
    process_id: str
    process: ProcessInfo | None
    """None for DELETED."""


def process_info(process: process_pb2.Process) -> ProcessInfo:
    """Converts a description from any answer."""
    return ProcessInfo(
        id=process.id,
        tag=process.tag,
        label=process.label,
        state=ProcessState(process.state),
        pid=process.pid,
        command=process.command,
        argv=tuple(process.argv),
        cwd=process.cwd,
        user=process.user,
        pty=(process.pty.cols, process.pty.rows) if process.HasField("pty") else None,
        started_at=process.started_at.ToDatetime(tzinfo=timezone.utc),
        ended_at=process.ended_at.ToDatetime(tzinfo=timezone.utc) if process.HasField("ended_at") else None,
        outcome=outcome(process.outcome) if process.HasField("outcome") else None,
        usage=resource_usage(process.usage) if process.HasField("usage") else None,
        written=_output_offsets(process.written),
        kept_from=_output_offsets(process.kept_from),
        live_processes=process.live_processes,
        input_bytes=process.input_bytes,
        session_id=process.session_id,
    )


def process_result(ended: process_pb2.ProcessEnded) -> ProcessResult:
    """Converts the last event of a stream."""
    return ProcessResult(
        outcome=outcome(ended.outcome),
        exit_code=ended.outcome.exit_code,
        duration=ended.duration.ToTimedelta(),
        usage=resource_usage(ended.usage),
    )


def stop_result(response: process_pb2.StopProcessResponse) -> StopResult:
    """Converts the answer of StopProcess."""
    return StopResult(
        process=process_info(response.process) if response.HasField("process") else None,
        forced=response.forced,
        surviving_processes=response.surviving_processes,
    )


def _output_offsets(offsets: process_pb2.OutputOffsets) -> OutputOffsets:
    return OutputOffsets(offsets.stdout, offsets.stderr, offsets.pty)
