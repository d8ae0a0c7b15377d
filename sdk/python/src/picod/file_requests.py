"""Builds the requests of the methods that deal with files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from google.protobuf.timestamp_pb2 import Timestamp

from .requests import duration
from .results import FileType
from .v1 import filesystem_pb2

MoveMode = filesystem_pb2.MoveMode


def move_request(source: str, destination: str, *, no_replace: bool, exchange: bool, user: str) -> filesystem_pb2.MoveRequest:
    """Builds the request of Move.

    Raises:
        ValueError: Both `no_replace` and `exchange`.
    """
    if no_replace and exchange:
        raise ValueError("give either no_replace or exchange")
    mode = MoveMode.MOVE_MODE_NO_REPLACE if no_replace else MoveMode.MOVE_MODE_UNSPECIFIED
    if exchange:
        mode = MoveMode.MOVE_MODE_EXCHANGE
    return filesystem_pb2.MoveRequest(source=source, destination=destination, user=user, mode=mode)


def set_attributes_request(
    path: str,
    *,
    mode: int | None,
    owner: str | int,
    group: str | int,
    modified_time: datetime | float | None,
    accessed_time: datetime | float | None,
    set_xattrs: Mapping[str, bytes] | None,
    remove_xattrs: Iterable[str],
    follow_symlinks: bool,
    user: str,
) -> filesystem_pb2.SetAttributesRequest:
    """Leaves out what was not given."""
    return filesystem_pb2.SetAttributesRequest(
        path=path,
        user=user,
        no_follow_symlinks=not follow_symlinks,
        mode=mode,
        owner=str(owner),
        group=str(group),
        modified_time=timestamp(modified_time),
        accessed_time=timestamp(accessed_time),
        set_xattrs=set_xattrs,
        remove_xattrs=remove_xattrs,
    )


def find_request(
    path: str,
    *,
    include: Iterable[str],
    exclude: Iterable[str],
    gitignore: bool,
    skip_hidden: bool,
    types: Iterable[FileType],
    min_size: int | None,
    max_size: int | None,
    modified_since: datetime | float | None,
    modified_before: datetime | float | None,
    depth: int,
    max_results: int,
    user: str,
) -> filesystem_pb2.FindRequest:
    """Leaves out what was not given."""
    return filesystem_pb2.FindRequest(
        path=path,
        user=user,
        include=include,
        exclude=exclude,
        gitignore=gitignore,
        skip_hidden=skip_hidden,
        types=[wanted.value for wanted in types],  # type: ignore[misc] # ints
        min_size=min_size,
        max_size=max_size,
        modified_since=timestamp(modified_since),
        modified_before=timestamp(modified_before),
        depth=depth,
        max_results=max_results,
    )


def signed_url_request(
    path: str, *, method: str, lifetime: float | None, single_use: bool, user: str
) -> filesystem_pb2.CreateSignedUrlRequest:
    """Builds the request of CreateSignedUrl."""
    return filesystem_pb2.CreateSignedUrlRequest(
        path=path,
        user=user,
        method=method,
        lifetime=None if lifetime is None else duration(lifetime),
        single_use=single_use,
    )


def timestamp(time: datetime | float | None) -> Timestamp | None:
    """Converts a time: an aware datetime, a naive one of the local time zone, or seconds since 1970."""
    if time is None:
        return None
    message = Timestamp()
    if isinstance(time, datetime):
        # Naive or not: FromDatetime takes what is naive for UTC.
        message.FromDatetime(time.astimezone(timezone.utc))
    else:
        message.FromNanoseconds(round(time * 1_000_000_000))
    return message
