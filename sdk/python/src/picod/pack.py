"""Makes the requests of WriteArchive: a tar archive of local files, made while it is sent."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType

from .local_tree import LocalEntry
from .progress import Progress
from .upload import CHUNK_BYTES
from .v1.filesystem_pb2 import WriteArchiveMetadata, WriteArchiveRequest

_NANOSECONDS = 1_000_000_000


class ArchiveUpload:
    """The requests of one WriteArchive; about one chunk is in memory. As `Upload`, for more than one thread."""

    def __init__(self, entries: Iterable[LocalEntry], metadata: WriteArchiveMetadata, progress: Progress) -> None:
        self.failure: Exception | None = None
        """What went wrong while reading, which grpc reports only as a cancelled call."""
        self._digest = hashlib.sha256()
        self._progress = progress
        self._requests = self._read(entries, metadata)
        self._lock = threading.Lock()
        self._closed = False

    @property
    def sha256(self) -> str:
        """Of what was sent."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[WriteArchiveRequest]:
        return self

    def __next__(self) -> WriteArchiveRequest:
        with self._lock:
            if self._closed:
                raise StopIteration
            try:
                return next(self._requests)
            except (OSError, ValueError) as error:
                self.failure = error
                raise

    def _read(self, entries: Iterable[LocalEntry], metadata: WriteArchiveMetadata) -> Iterator[WriteArchiveRequest]:
        yield WriteArchiveRequest(metadata=metadata)
        buffer = bytearray()
        for piece in _pieces(entries, self._progress):
            buffer += piece
            if len(buffer) >= CHUNK_BYTES:
                yield self._request(buffer)
                buffer.clear()
        if buffer:
            yield self._request(buffer)

    def _request(self, buffer: bytearray) -> WriteArchiveRequest:
        chunk = bytes(buffer)
        self._digest.update(chunk)
        return WriteArchiveRequest(chunk=chunk)

    def __enter__(self) -> ArchiveUpload:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._lock:
            self._closed = True
        if self.failure is not None and isinstance(error, Exception):
            raise self.failure from None


def _pieces(entries: Iterable[LocalEntry], progress: Progress) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(), mode="w", format=tarfile.PAX_FORMAT) as describer:
        for entry in entries:
            info = describer.gettarinfo(entry.path, arcname=entry.relative)
            if info is None:  # A socket, which tar(1) leaves out too.
                continue
            _set_exact_time(info, entry.status.st_mtime_ns)
            if info.isreg():
                yield from _file(info, entry.path, progress)
            else:
                yield _header(info)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _set_exact_time(info: tarfile.TarInfo, mtime_ns: int) -> None:
    # As a number it would be a float, which does not hold nanoseconds.
    seconds, nanoseconds = divmod(mtime_ns, _NANOSECONDS)
    info.mtime = seconds
    if nanoseconds and seconds >= 0:
        info.pax_headers = {"mtime": f"{seconds}.{nanoseconds:09}"}


def _file(info: tarfile.TarInfo, path: str, progress: Progress) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield _header(info)
        remaining = info.size
        # Not past the announced size: a log that grows meanwhile goes over as it was.
        while remaining:
            chunk = file.read(min(CHUNK_BYTES, remaining))
            if not chunk:
                raise ValueError(f"the file shrank while it was read: {path}")
            yield chunk
            remaining -= len(chunk)
            progress.advance(len(chunk))
    yield bytes(-info.size % tarfile.BLOCKSIZE)


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
