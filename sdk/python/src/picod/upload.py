"""The request side of WriteFile: metadata, then chunks, from memory or from a local file."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO

from .progress import Progress
from .requests import to_bytes
from .v1.filesystem_pb2 import WriteFileMetadata, WriteFileRequest

# The daemon takes messages of 4 MiB; beyond 512 KiB throughput does not grow.
CHUNK_BYTES = 512 * 1024


class Upload:
    """The requests of one upload, read as they are sent: at most one chunk is in memory.

    Iterating and closing may happen in different threads: grpc consumes requests in a thread of its own and may still be in
    `__next__` when the call has already failed.
    """

    def __init__(self, source: BinaryIO, metadata: WriteFileMetadata, progress: Progress) -> None:
        self.failure: Exception | None = None
        """What went wrong while reading, which grpc reports only as a cancelled call."""
        self._source = source
        self._progress = progress
        self._requests = self._read(metadata)
        self._lock = threading.Lock()
        self._closed = False

    def __iter__(self) -> Iterator[WriteFileRequest]:
        return self

    def __next__(self) -> WriteFileRequest:
        with self._lock:
            if self._closed:
                raise StopIteration
            try:
                return next(self._requests)
            except OSError as error:
                self.failure = error
                raise

    def _read(self, metadata: WriteFileMetadata) -> Iterator[WriteFileRequest]:
        yield WriteFileRequest(metadata=metadata)
        remaining = metadata.size
        self._progress.restart(remaining)
        # Not past the announced size: a log that grows meanwhile goes over as it was.
        while remaining and (chunk := self._source.read(min(CHUNK_BYTES, remaining))):
            yield WriteFileRequest(chunk=chunk)
            remaining -= len(chunk)
            self._progress.advance(len(chunk))

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
            self._source.close()
            self._progress.__exit__(kind, error, traceback)
        if self.failure is not None and isinstance(error, Exception):
            raise self.failure from None


def upload_of_content(content: str | bytes, remote_path: str, *, mode: int | None, user: str) -> Upload:
    """Announces size and SHA-256."""
    data = to_bytes(content)
    metadata = WriteFileMetadata(path=remote_path, mode=mode, user=user, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    return Upload(io.BytesIO(data), metadata, Progress(False, remote_path))


def upload_of_file(
    local_path: str | os.PathLike[str],
    remote_path: str,
    *,
    mode: int | None,
    user: str,
    checksum: bool,
    progress: bool,
) -> Upload:
    """Announces the size, and the SHA-256 after reading the file once for it when `checksum` is asked.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a regular file (its size could not be announced).
        ImportError: `progress` without tqdm.
    """
    # Before opening: open() of a FIFO waits for a writer.
    if not stat.S_ISREG(os.stat(local_path).st_mode) and not os.path.isdir(local_path):
        raise ValueError(f"cannot upload what is not a regular file: {os.fspath(local_path)}")
    source = open(local_path, "rb")  # noqa: SIM115 (closed by Upload)
    try:
        size, sha256 = os.fstat(source.fileno()).st_size, ""
        if checksum or size == 0:  # Files in /proc have content, but no size.
            size, sha256 = _size_and_sha256(source)
        metadata = WriteFileMetadata(path=remote_path, mode=mode, user=user, size=size, sha256=sha256)
        return Upload(source, metadata, Progress(progress, os.path.basename(os.fspath(local_path))))
    except BaseException:
        source.close()
        raise


def _size_and_sha256(source: BinaryIO) -> tuple[int, str]:
    digest = hashlib.sha256()
    size = 0
    while chunk := source.read(CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    source.seek(0)
    return size, digest.hexdigest()
