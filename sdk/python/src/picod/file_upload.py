"""Stores a local file in the sandbox by a pending upload, which outlives broken connections."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass

from .connection import instance_in
from .errors import DaemonRestartedError, NotFoundError, PicoDError
from .local_digest import LocalDigest
from .progress import Progress, ProgressOption
from .results import EntryInfo, entry_info
from .transfer import Attempts, Transfer
from .upload import LocalFile, Upload
from .v1 import filesystem_pb2

UPLOAD_PARTS = 1
"""Parts that are sent at a time. More are no faster on one connection: see "Transfers" in the README."""

# Smaller parts would not gain what beginning them costs.
_MIN_PART_BYTES = 8 * 1024 * 1024

Range = tuple[int, int]


@dataclass(frozen=True)
class UploadOptions:
    """How a file is to be stored; the fields are the arguments of `PicoDClient.upload_file`."""

    remote_path: str
    mode: int | None = None
    user: str = ""
    checksum: bool = True
    sync: bool = False
    must_not_exist: bool = False
    if_etag: str = ""
    parts: int = UPLOAD_PARTS

    @property
    def precondition(self) -> filesystem_pb2.Precondition | None:
        """As CommitUpload takes it."""
        if self.must_not_exist:
            return filesystem_pb2.Precondition(must_not_exist=True)
        return filesystem_pb2.Precondition(etag=self.if_etag) if self.if_etag else None


def upload_file(
    transfer: Transfer, local_path: str | os.PathLike[str], options: UploadOptions, progress: ProgressOption
) -> EntryInfo:
    """Returns the file as it is then."""
    name = os.path.basename(os.fspath(local_path))
    with LocalFile(local_path) as source, Progress(progress, name) as bar:
        if not options.checksum:
            return _FileUpload(transfer, source, options, bar, None).run()
        with LocalDigest(source) as digest:
            return _FileUpload(transfer, source, options, bar, digest).run()


class _FileUpload:
    """One file. The daemon knows what of it has arrived; one that was restarted knows nothing, and gets all of it again."""

    def __init__(
        self, transfer: Transfer, source: LocalFile, options: UploadOptions, progress: Progress, digest: LocalDigest | None
    ) -> None:
        self._transfer = transfer
        self._source = source
        self._options = options
        self._progress = progress
        self._digest = digest
        self._id = f"up_{secrets.token_hex(12)}"
        self._attempts = Attempts(transfer)
        self._begun = False
        self._received_bytes = 0
        self._instance = ""
        self._committing = False

    def run(self) -> EntryInfo:
        try:
            while True:
                try:
                    if not self._committing:
                        self._send()
                    return self._commit()
                except PicoDError as error:
                    self._attempts.wait_after(error, "UPLOAD_BUSY")
        except BaseException:
            self._abort()
            raise

    def _send(self) -> None:
        received = self._received() if self._begun else []
        received_bytes = sum(end - start for start, end in received)
        if received_bytes > self._received_bytes:
            self._attempts.progressed()
        self._received_bytes = received_bytes
        self._progress.restart(self._source.size, received_bytes)
        missing = missing_ranges(received, self._source.size)
        parts = split_ranges(missing, self._options.parts, _MIN_PART_BYTES) if missing or received else [(0, 0)]
        self._begun = True
        self._transfer.in_parallel(self._send_part, parts, self._options.parts)

    def _received(self) -> list[Range]:
        request = filesystem_pb2.GetUploadRequest(upload_id=self._id, user=self._options.user)
        try:
            upload = self._transfer.unary("GetUpload", request).upload
        except NotFoundError:
            return []
        return [(found.start, found.end) for found in upload.received]

    def _send_part(self, part: Range) -> None:
        start, end = part
        metadata = filesystem_pb2.WriteFileMetadata(
            path=self._options.remote_path,
            mode=self._options.mode,
            user=self._options.user,
            offset=start,
            size=end - start,
            upload_id=self._id,
        )
        requests = Upload(self._source.read_at, metadata, self._progress)
        with requests, self._transfer.calling("WriteFile", requests) as call:
            call.result()
            self._instance = instance_in(call.initial_metadata())

    def _commit(self) -> EntryInfo:
        request = filesystem_pb2.CommitUploadRequest(
            upload_id=self._id,
            size=self._source.size,
            sha256=self._digest.hexdigest() if self._digest else "",
            durability=filesystem_pb2.DURABILITY_SYNC if self._options.sync else filesystem_pb2.DURABILITY_UNSPECIFIED,
            precondition=self._options.precondition,
            user=self._options.user,
        )
        try:
            return entry_info(self._transfer.unary("CommitUpload", request).entry)
        except NotFoundError as error:
            if error.reason != "UPLOAD_NOT_FOUND":
                raise
            return self._forgotten(error)
        except PicoDError as error:
            # Whether it was done is found out by asking again.
            self._committing = error.reason == ""
            raise

    def _forgotten(self, error: NotFoundError) -> EntryInfo:
        """The daemon does not know the upload any longer."""
        if self._committing and error.instance and error.instance == self._instance:
            # It was done, and then something else was written.
            request = filesystem_pb2.StatRequest(path=self._options.remote_path, user=self._options.user, follow_symlinks=True)
            return entry_info(self._transfer.unary("Stat", request).entry)
        if self._committing and self._options.precondition:
            raise DaemonRestartedError from error
        if error.instance == self._instance:
            raise error
        self._committing = False
        self._begun = False
        self._send()
        return self._commit()

    def _abort(self) -> None:
        if not self._begun:
            return
        request = filesystem_pb2.AbortUploadRequest(upload_id=self._id, user=self._options.user)
        with contextlib.suppress(PicoDError, ValueError):  # Then it expires; the client is closed.
            self._transfer.last_call("AbortUpload", request)


def missing_ranges(received: list[Range], size: int) -> list[Range]:
    """Returns what lies between the ranges, which are in order and do not overlap."""
    missing, position = [], 0
    for start, end in [*received, (size, size)]:
        if position < start:
            missing.append((position, start))
        position = max(position, end)
    return missing


def split_ranges(ranges: list[Range], parts: int, min_bytes: int) -> list[Range]:
    """Cuts the ranges so that about so many parts of the same length come of them."""
    total = sum(end - start for start, end in ranges)
    length = max(-(-total // max(parts, 1)), min_bytes)
    return [(start, min(start + length, end)) for first, end in ranges for start in range(first, end, length)]
