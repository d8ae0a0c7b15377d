"""The SHA-256 of a local file, made while the file is being sent."""

from __future__ import annotations

import hashlib
import threading
from types import TracebackType

from .upload import CHUNK_BYTES, LocalFile


class LocalDigest:
    """Reads the file in a thread of its own: beside the network that costs no time, and parts may be sent in any order."""

    def __init__(self, source: LocalFile) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self._failure: Exception | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._read, name="picod-digest", daemon=True)

    def hexdigest(self) -> str:
        """Waits for it.

        Raises:
            OSError: The file could not be read.
        """
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._digest.hexdigest()

    def _read(self) -> None:
        offset = 0
        try:
            while offset < self._source.size and not self._stopping:
                chunk = self._source.read_at(offset, min(CHUNK_BYTES, self._source.size - offset))
                if not chunk:
                    return
                self._digest.update(chunk)
                offset += len(chunk)
        except Exception as error:
            self._failure = error

    def __enter__(self) -> LocalDigest:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stopping = True
        self._thread.join()
