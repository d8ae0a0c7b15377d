"""What happens in a watched directory, as plain immutable values."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Union

from .requests import duration
from .v1 import filesystem_pb2


class FileChangeKind(enum.Enum):
    """What happened to a path."""

    UNSPECIFIED = 0
    """Not known to this version of the client."""
    CREATED = 1
    MODIFIED = 2
    """Its content has changed."""
    ATTRIBUTES = 3
    """Mode, owner, times or another attribute has changed."""
    REMOVED = 4
    MOVED = 5
    """It was renamed within what is watched. From or to elsewhere it is REMOVED or CREATED."""

    @classmethod
    def _missing_(cls, value: object) -> FileChangeKind:
        return cls.UNSPECIFIED


@dataclass(frozen=True)
class FileChange:
    """Something that happened to a path."""

    kind: FileChangeKind
    path: str
    from_path: str
    """Where it was; empty unless MOVED."""
    is_directory: bool
    time: datetime
    """When the daemon saw it, in UTC."""


@dataclass(frozen=True)
class ChangesLost:
    """Changes are missing here: list the directory to know what is there."""

    reason: str
    """"overflow": they came faster than they were taken; "reconnected": the connection was broken, or the daemon restarted."""


@dataclass(frozen=True)
class Unwatched:
    """A directory below can no longer, or not, be watched."""

    path: str
    reason: str
    """Name of the errno."""
    message: str
    """For a person."""


WatchEvent = Union[FileChange, ChangesLost, Unwatched]


@dataclass(frozen=True)
class Changes:
    """What has changed since a cursor."""

    changes: tuple[FileChange, ...]
    cursor: str
    """For the next call."""
    history_lost: bool
    """Changes before these are missing: list the directory."""
    more: bool
    """More changes are waiting."""


def watch_options(
    *,
    recursive: bool,
    include: Iterable[str],
    exclude: Iterable[str],
    debounce: float | None,
    kinds: Iterable[FileChangeKind],
) -> filesystem_pb2.WatchOptions:
    """Leaves out what was not given."""
    return filesystem_pb2.WatchOptions(
        recursive=recursive,
        include=include,
        exclude=exclude,
        debounce=None if debounce is None else duration(debounce),
        kinds=[kind.value for kind in kinds],  # type: ignore[misc] # ints
    )


def watch_event(response: filesystem_pb2.WatchDirectoryResponse) -> WatchEvent | None:
    """Converts a message; None when it is none for the reader. `ready` after the first one says that changes were lost."""
    kind = response.WhichOneof("event")
    if kind == "change":
        return file_change(response.change)
    if kind == "overflow":
        return ChangesLost("overflow")
    if kind == "ready":
        return ChangesLost("reconnected")
    if kind == "unwatched":
        return Unwatched(response.unwatched.path, response.unwatched.reason, response.unwatched.message)
    return None


def file_change(change: filesystem_pb2.FileChange) -> FileChange:
    """Converts a change of any answer."""
    return FileChange(
        kind=FileChangeKind(change.kind),
        path=change.path,
        from_path=change.from_path,
        is_directory=change.is_directory,
        time=change.time.ToDatetime(tzinfo=timezone.utc),
    )


def changes_of(response: filesystem_pb2.GetChangesResponse) -> Changes:
    """Converts the answer of GetChanges."""
    return Changes(tuple(map(file_change, response.changes)), response.cursor, response.history_lost, response.more)
