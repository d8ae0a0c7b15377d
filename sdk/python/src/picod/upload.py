"""The request side of WriteFile: metadata, then chunks."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import BinaryIO, cast

from .progress import Progress
from .requests import to_bytes
from .v1.filesystem_pb2 import WriteFileMetadata, WriteFileRequest

# The daemon takes messages of 4 MiB; beyond 512 KiB throughput does not grow.
CHUNK_BYTES = 512 * 1024
_SPOOL_BYTES = 1024 * 1024


class LocalFile:
    """A local file as long as it was when it was opened, for any thread.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a regular file.
    """

    def __init__(self, local_path: str | os.PathLike[str]) -> None:
        # Before opening: open() of a FIFO waits for a writer.
        if not stat.S_ISREG(os.stat(local_path).st_mode) and not os.path.isdir(local_path):
            raise ValueError(f"cannot upload what is not a regular file: {os.fspath(local_path)}")
        self._file: BinaryIO = open(local_path, "rb")  # noqa: SIM115 (closed by close)
        self._reading = threading.Lock()
        self.size = os.fstat(self._file.fileno()).st_size
        if self.size == 0:  # Files in /proc have content, but no size.
            with self._file as content:
                self._file = cast(BinaryIO, tempfile.SpooledTemporaryFile(_SPOOL_BYTES))  # noqa: SIM115 (closed by close)
                shutil.copyfileobj(content, self._file)
            self.size = self._file.tell()

    def read_at(self, offset: int, length: int) -> bytes:
        """Returns at most so many bytes; none at its end, which may have come nearer meanwhile."""
        with self._reading:
            self._file.seek(offset)
            return self._file.read(length)

    def close(self) -> None:
        """Waits for who reads."""
        with self._reading:
            self._file.close()

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class Upload:
    """The requests of one WriteFile, read as they are sent: at most one chunk is in memory.

    Iterating and closing may happen in different threads: grpc consumes requests in a thread of its own and may still be in
    `__next__` when the call has already failed.
    """

    def __init__(self, read_at: Callable[[int, int], bytes], metadata: WriteFileMetadata, progress: Progress) -> None:
        self.failure: Exception | None = None
        """What went wrong while reading, which grpc reports only as a cancelled call."""
        self._read_at = read_at
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
        offset = metadata.offset
        # Not past the announced size: a log that grows meanwhile goes over as it was.
        end = offset + metadata.size
        while offset < end and (chunk := self._read_at(offset, min(CHUNK_BYTES, end - offset))):
            yield WriteFileRequest(chunk=chunk)
            offset += len(chunk)
            self._progress.advance(len(chunk))

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
        if self.failure is not None and isinstance(error, Exception):
            raise self.failure from None


def upload_of_content(content: str | bytes, remote_path: str, *, mode: int | None, user: str) -> Upload:
    """Announces size and SHA-256."""
    data = to_bytes(content)
    metadata = WriteFileMetadata(path=remote_path, mode=mode, user=user, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    view = io.BytesIO(data)

    def read_at(offset: int, length: int) -> bytes:
        view.seek(offset)
        return view.read(length)

    return Upload(read_at, metadata, Progress(False, remote_path))
