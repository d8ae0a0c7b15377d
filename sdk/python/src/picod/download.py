"""The response side of ReadFile: checked content, kept in memory or put in place of a local file."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import threading
from types import TracebackType
from typing import BinaryIO

from .errors import DataLossError
from .v1.filesystem_pb2 import ReadFileResponse, ReadFileSummary


class Content:
    """Counts, and if wanted hashes, the chunks of one ReadFile stream and compares them with its summary."""

    def __init__(self, checksum: bool) -> None:
        self._digest = hashlib.sha256() if checksum else None
        self.bytes = 0
        """So many have arrived."""
        self._summary: ReadFileSummary | None = None

    def chunk_of(self, response: ReadFileResponse) -> bytes:
        """Returns the content in this message, which may be none."""
        if response.WhichOneof("response") == "summary":
            self._summary = response.summary
        chunk = response.chunk
        if self._digest:
            self._digest.update(chunk)
        self.bytes += len(chunk)
        return chunk

    @property
    def etag(self) -> str:
        """That of the file when all had been read; empty without a checksum, and from an older daemon."""
        return self._summary.etag if self._summary else ""

    def verify(self) -> None:
        """Raises DataLossError unless everything arrived, unchanged."""
        if self._summary is None:
            raise DataLossError(f"incomplete file: the stream ended without its summary after {self.bytes} bytes")
        if self._summary.bytes != self.bytes:
            raise DataLossError(f"incomplete file: {self.bytes} of {self._summary.bytes} bytes arrived")
        if self._digest and self._summary.sha256 != self._digest.hexdigest():
            raise DataLossError(f"wrong content: SHA-256 {self._digest.hexdigest()}, sent {self._summary.sha256}")


class Destination:
    """A local file to be written, by any thread: a temporary file beside it takes the name when all is verified.

    Symbolic links are followed and the permission bits of an existing file are kept; a new file gets what the umask leaves of
    0666. Leaving the context without `finish` removes the temporary file and leaves the destination as it was.

    Raises:
        OSError: The directory does not exist or cannot be written, or the disk is full.
        ValueError: The destination exists and is not a regular file.
    """

    def __init__(self, local_path: str | os.PathLike[str]) -> None:
        self._destination = os.path.realpath(local_path)
        self._mode = _mode_of_regular_file(self._destination)
        self._temporary = os.path.join(os.path.dirname(self._destination), f".picod-{secrets.token_hex(8)}.part")
        self._file: BinaryIO = open(self._temporary, "xb", opener=self._open)  # noqa: SIM115 (closed by __exit__)
        self._finished = False
        self._writing = threading.Lock()

    def write_at(self, offset: int, chunk: bytes) -> None:
        """Stores a piece."""
        with self._writing:
            self._file.seek(offset)
            self._file.write(chunk)

    def restart(self) -> None:
        """Forgets what was written."""
        with self._writing:
            self._file.seek(0)
            self._file.truncate()

    def finish(self, sync: bool) -> None:
        """Makes the content visible; with `sync` it survives a power loss."""
        if self._mode is not None:
            os.chmod(self._temporary, self._mode)
        if sync:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._temporary, self._destination)
        self._finished = True
        if sync:
            sync_directory(os.path.dirname(self._destination))

    def _open(self, path: str, flags: int) -> int:
        # Never readable by more than the file it replaces, not even for a moment.
        return os.open(path, flags, 0o666 if self._mode is None else self._mode)

    def __enter__(self) -> Destination:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if not self._finished:
            with contextlib.suppress(OSError):  # Closing flushes, which fails again on a full disk.
                self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)


def sync_directory(path: str) -> None:
    """Makes names last; where directories cannot be opened there is no way to."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_of_regular_file(path: str) -> int | None:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ValueError(f"cannot download onto what is not a regular file: {path}")
    return stat.S_IMODE(mode)
