"""Puts a file of the sandbox in place of a local one, in parts that are verified one by one."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .download import Content, Destination
from .errors import FailedPreconditionError, OutOfRangeError, PicoDError
from .progress import Progress, ProgressOption
from .requests import read_file_request
from .transfer import Attempts, Transfer
from .v1 import filesystem_pb2

DOWNLOAD_PARTS = 1
"""Parts that are fetched at a time. More are no faster on one connection: see "Transfers" in the README."""

_PART_BYTES = 16 * 1024 * 1024
"""What a broken connection costs at most, and is never kept unverified."""


@dataclass(frozen=True)
class DownloadOptions:
    """How a file is to be fetched; the fields are the arguments of `PicoDClient.download_file`."""

    remote_path: str
    user: str = ""
    checksum: bool = True
    sync: bool = False
    parts: int = DOWNLOAD_PARTS


def download_file(
    transfer: Transfer, local_path: str | os.PathLike[str], options: DownloadOptions, progress: ProgressOption
) -> None:
    """Leaves the local file as it was, unless all of it has arrived."""
    with Progress(progress, os.path.basename(options.remote_path)) as bar, Destination(local_path) as destination:
        download = _FileDownload(transfer, destination, options, bar)
        try:
            download.by_parts()
        except _ChangedError:
            download.as_a_whole()
        destination.finish(options.sync)


class _ChangedError(Exception):
    """Parts would not be of one version of the file."""


class _FileDownload:
    def __init__(self, transfer: Transfer, destination: Destination, options: DownloadOptions, progress: Progress) -> None:
        self._transfer = transfer
        self._destination = destination
        self._options = options
        self._progress = progress
        self._entry = filesystem_pb2.EntryInfo()

    def by_parts(self) -> None:
        """Goes on with a part that was broken off, as long as the file is the same.

        Raises:
            _ChangedError: It is not, for example a log that is being written; or its size is not known before its end (/proc).
        """
        self._fetch_part(0)
        offsets = range(_PART_BYTES, self._entry.size, _PART_BYTES)
        self._transfer.in_parallel(self._fetch_part, offsets, self._options.parts)

    def as_a_whole(self) -> None:
        """Takes it in one go, as it is when it is opened: what is appended or replaced meanwhile does not matter."""
        attempts = Attempts(self._transfer)
        while True:
            self._destination.restart()
            try:
                self._fetch(0, None, "")
                return
            except PicoDError as error:
                attempts.wait_after(error)

    def _fetch_part(self, offset: int) -> None:
        attempts = Attempts(self._transfer)
        while True:
            try:
                self._fetch(offset, _PART_BYTES, self._entry.etag if offset else "")
                return
            except (FailedPreconditionError, OutOfRangeError) as error:
                if offset == 0:
                    raise
                raise _ChangedError from error
            except PicoDError as error:
                attempts.wait_after(error)

    def _fetch(self, offset: int, length: int | None, etag: str) -> None:
        options = self._options
        request = read_file_request(
            options.remote_path, offset=offset, length=length, user=options.user, checksum=options.checksum, if_etag=etag
        )
        content = Content(options.checksum)
        try:
            with self._transfer.calling("ReadFile", request) as responses:
                for response in responses:
                    if offset == 0 and response.WhichOneof("response") == "metadata":
                        self._entry = response.metadata.entry
                        self._progress.restart(self._entry.size or None)
                        if self._entry.size == 0 and length is not None:
                            raise _ChangedError
                    position = offset + content.bytes
                    chunk = content.chunk_of(response)
                    self._destination.write_at(position, chunk)
                    self._progress.advance(len(chunk))
            content.verify()
            if offset == 0 and length is not None and content.etag not in ("", self._entry.etag):
                raise _ChangedError
        except BaseException:
            self._progress.advance(-content.bytes)
            raise
