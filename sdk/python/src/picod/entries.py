"""What the daemon says about directories, searches and uploads, as plain immutable values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from .results import EntryInfo, entry_info
from .v1 import filesystem_pb2


@dataclass(frozen=True)
class UnreadableEntry:
    """Something that was passed over because it could not be read."""

    path: str
    reason: str
    """Name of the errno, for example "EACCES"."""
    message: str
    """For a person."""


@dataclass(frozen=True)
class CopyResult:
    """What `copy` copied."""

    entry: EntryInfo
    """The copy."""
    entries: int
    """Files, directories and links, the named one included."""
    bytes: int
    """Of the files among them."""


@dataclass(frozen=True)
class FindSummary:
    """What `find` found, in all."""

    matched: int
    """Entries that match, also those beyond `max_results`."""
    visited: int
    """Entries that were looked at."""
    unreadable_count: int
    unreadable: tuple[UnreadableEntry, ...]
    """The first 100 of what could not be read."""


@dataclass(frozen=True)
class SearchMatch:
    """A line that matches."""

    path: str
    line_number: int
    """From 1."""
    line: str
    """Without its line ending; bytes that are not UTF-8 replaced by U+FFFD."""
    offset: int
    """Position of the line's first byte in the file."""
    matches: tuple[tuple[int, int], ...]
    """Start and end of each match, in bytes of the line's UTF-8."""
    before: tuple[str, ...]
    """Lines before it that are no match themselves and did not come with the match before."""
    after: tuple[str, ...]
    line_truncated: bool
    """The line is longer than `line`."""


@dataclass(frozen=True)
class SearchSummary:
    """What `search` found, in all."""

    matched_lines: int
    """Also those that were not sent."""
    matched_files: int
    searched_files: int
    """Text files that were searched to their end."""
    binary_files: int
    """Left out."""
    searched_bytes: int
    truncated: bool
    """Matches were left out because of a limit."""
    unreadable_count: int
    unreadable: tuple[UnreadableEntry, ...]
    """The first 100 of what could not be read."""


@dataclass(frozen=True)
class PendingUpload:
    """A file that is still being collected."""

    id: str
    path: str
    """Where it will be."""
    received: tuple[tuple[int, int], ...]
    """Start and end of what has arrived, in bytes, in order and without overlaps."""
    created_at: datetime
    """In UTC."""
    expires_at: datetime
    """In UTC; when it is dropped unless something is added."""


@dataclass(frozen=True)
class SignedUrl:
    """An address that works without the token."""

    url: str
    """Path and query, to be put behind the address of the daemon."""
    expires_at: datetime
    """In UTC."""


def unreadable_entries(entries: Iterable[filesystem_pb2.UnreadableEntry]) -> tuple[UnreadableEntry, ...]:
    """Converts what any answer says was passed over."""
    return tuple(UnreadableEntry(entry.path, entry.reason, entry.message) for entry in entries)


def copy_result(response: filesystem_pb2.CopyResponse) -> CopyResult:
    """Converts the answer of Copy."""
    return CopyResult(entry_info(response.entry), response.entries, response.bytes)


def find_summary(summary: filesystem_pb2.FindSummary) -> FindSummary:
    """Converts the last message of Find."""
    return FindSummary(summary.matched, summary.visited, summary.unreadable_count, unreadable_entries(summary.unreadable))


def search_match(match: filesystem_pb2.SearchMatch) -> SearchMatch:
    """Converts a message of Search."""
    return SearchMatch(
        path=match.path,
        line_number=match.line_number,
        line=match.line,
        offset=match.offset,
        matches=_ranges(match.matches),
        before=tuple(match.before),
        after=tuple(match.after),
        line_truncated=match.line_truncated,
    )


def search_summary(summary: filesystem_pb2.SearchSummary) -> SearchSummary:
    """Converts the last message of Search."""
    return SearchSummary(
        matched_lines=summary.matched_lines,
        matched_files=summary.matched_files,
        searched_files=summary.searched_files,
        binary_files=summary.binary_files,
        searched_bytes=summary.searched_bytes,
        truncated=summary.truncated,
        unreadable_count=summary.unreadable_count,
        unreadable=unreadable_entries(summary.unreadable),
    )


def pending_upload(upload: filesystem_pb2.PendingUpload) -> PendingUpload:
    """Converts an upload of any answer."""
    return PendingUpload(
        id=upload.upload_id,
        path=upload.path,
        received=_ranges(upload.received),
        created_at=upload.created_time.ToDatetime(tzinfo=timezone.utc),
        expires_at=upload.expire_time.ToDatetime(tzinfo=timezone.utc),
    )


def signed_url(response: filesystem_pb2.CreateSignedUrlResponse) -> SignedUrl:
    """Converts the answer of CreateSignedUrl."""
    return SignedUrl(response.url, response.expire_time.ToDatetime(tzinfo=timezone.utc))


def _ranges(ranges: Iterable[filesystem_pb2.ByteRange]) -> tuple[tuple[int, int], ...]:
    return tuple((found.start, found.end) for found in ranges)
