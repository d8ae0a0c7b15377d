"""Moves whole directories as one archive, either way."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, cast

from .entries import UnreadableEntry, unreadable_entries
from .errors import DataLossError, PicoDError
from .ignore import IgnoreRules
from .local_tree import LocalEntry, walk
from .pack import ArchiveUpload
from .progress import Progress, ProgressOption
from .results import EntryInfo, entry_info
from .transfer import Attempts, Transfer
from .unpack import Unpacking
from .v1 import filesystem_pb2


@dataclass(frozen=True)
class DirectoryUpload:
    """What `upload_dir` stored."""

    entry: EntryInfo
    """The directory as it is then."""
    entries: int
    bytes: int
    """Of the files."""


@dataclass(frozen=True)
class DirectoryDownload:
    """What `download_dir` fetched."""

    entries: int
    unreadable_count: int
    unreadable: tuple[UnreadableEntry, ...]
    """The first 100 of what was passed over, with `skip_unreadable`."""


def upload_directory(
    transfer: Transfer,
    local_path: str | os.PathLike[str],
    metadata: filesystem_pb2.WriteArchiveMetadata,
    *,
    exclude: Iterable[str],
    ignore_files: Iterable[str],
    progress: ProgressOption,
) -> DirectoryUpload:
    """Sends all of it again when the connection breaks."""
    exclude, ignore_files = tuple(exclude), tuple(ignore_files)
    attempts = Attempts(transfer)
    with Progress(progress, os.path.basename(os.fspath(local_path))) as bar:
        while True:
            bar.restart(None)
            try:
                return send_archive(transfer, walk(local_path, IgnoreRules(exclude), ignore_files), metadata, bar)
            except PicoDError as error:
                attempts.wait_after(error)


def send_archive(
    transfer: Transfer, entries: Iterable[LocalEntry], metadata: filesystem_pb2.WriteArchiveMetadata, progress: Progress
) -> DirectoryUpload:
    """Sends the entries once, and compares what arrived with what was sent."""
    requests = ArchiveUpload(entries, metadata, progress)
    with requests, transfer.calling("WriteArchive", requests) as call:
        response = call.result()
    if response.sha256 != requests.sha256:
        raise DataLossError(f"wrong content: SHA-256 {response.sha256} arrived, {requests.sha256} was sent")
    return DirectoryUpload(entry_info(response.entry), response.entries, response.bytes)


def download_directory(
    transfer: Transfer,
    local_path: str | os.PathLike[str],
    request: filesystem_pb2.ReadArchiveRequest,
    progress: ProgressOption,
) -> DirectoryDownload:
    """Fetches all of it again when the connection breaks."""
    attempts = Attempts(transfer)
    with Progress(progress, os.path.basename(request.path)) as bar:
        while True:
            bar.restart(None)
            try:
                with Unpacking(local_path, bar) as unpacking, transfer.calling("ReadArchive", request) as responses:
                    archive = _Archive(responses)
                    unpacking.unpack(cast(IO[bytes], io.BufferedReader(archive)))
                    summary = archive.verify()
                    unpacking.finish()
                    return DirectoryDownload(unpacking.entries, summary.unreadable_count, unreadable_entries(summary.unreadable))
            except PicoDError as error:
                attempts.wait_after(error)


class _Archive(io.RawIOBase):
    """The archive in a ReadArchive stream as a file."""

    def __init__(self, responses: Iterator[filesystem_pb2.ReadArchiveResponse]) -> None:
        self._responses = responses
        self._digest = hashlib.sha256()
        self._chunk = memoryview(b"")
        self._summary: filesystem_pb2.ReadArchiveSummary | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # of any buffer
        while not self._chunk:
            response = next(self._responses, None)
            if response is None:
                return 0
            if response.WhichOneof("response") == "summary":
                self._summary = response.summary
            self._digest.update(response.chunk)
            self._chunk = memoryview(response.chunk)
        count = min(len(buffer), len(self._chunk))
        buffer[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count

    def verify(self) -> filesystem_pb2.ReadArchiveSummary:
        """Reads to the end; raises DataLossError unless everything arrived, unchanged."""
        while self.read(1024 * 1024):
            pass
        if self._summary is None:
            raise DataLossError("incomplete archive: the stream ended without its summary")
        if self._summary.sha256 != self._digest.hexdigest():
            raise DataLossError(f"wrong content: SHA-256 {self._digest.hexdigest()}, sent {self._summary.sha256}")
        return self._summary
