"""The progress of a transfer: tqdm's bar, or a function to be called, when asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Optional, Union

ProgressCallback = Callable[[int, Optional[int]], None]
"""Called with the bytes transferred so far and in all, None when that is unknown; one call at a time, from any thread."""

ProgressOption = Union[bool, ProgressCallback]


class Progress:
    """Counts transferred bytes on a bar on stderr, or for a function, or does nothing. For any thread.

    Raises:
        ImportError: A bar is wanted, but tqdm is not installed.
    """

    def __init__(self, wanted: ProgressOption, description: str) -> None:
        self._bar: Any = None
        self._callback = wanted if callable(wanted) else None
        self._done_bytes = 0
        self._total_bytes: int | None = None
        self._counting = threading.Lock()
        if wanted is True:
            try:
                from tqdm import tqdm  # noqa: PLC0415 (optional dependency)
            except ImportError as error:
                raise ImportError("progress=True needs tqdm: pip install 'picod[progress]'") from error
            self._bar = tqdm(desc=description, unit="B", unit_scale=True, unit_divisor=1024)

    def restart(self, total_bytes: int | None, done_bytes: int = 0) -> None:
        """Starts, or starts over, towards a total that may be unknown."""
        with self._counting:
            self._done_bytes, self._total_bytes = 0, total_bytes
            if self._bar is not None:
                self._bar.reset(total=total_bytes)
            self._count(done_bytes)

    def advance(self, count_bytes: int) -> None:
        """Counts what was transferred since the last call; less than 0: what must be transferred again."""
        if self._bar is not None or self._callback is not None:
            with self._counting:
                self._count(count_bytes)

    def _count(self, count_bytes: int) -> None:
        self._done_bytes += count_bytes
        if self._bar is not None:
            self._bar.update(count_bytes)
        if self._callback is not None:
            self._callback(self._done_bytes, self._total_bytes)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
