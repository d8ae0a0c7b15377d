"""The progress bar of a transfer: tqdm's, when asked for."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Progress:
    """Counts transferred bytes on a bar on stderr, or does nothing.

    Raises:
        ImportError: A bar is wanted, but tqdm is not installed.
    """

    def __init__(self, enabled: bool, description: str) -> None:
        self._bar: Any = None
        if enabled:
            try:
                from tqdm import tqdm  # noqa: PLC0415 (optional dependency)
            except ImportError as error:
                raise ImportError("progress=True needs tqdm: pip install 'picod[progress]'") from error
            self._bar = tqdm(desc=description, unit="B", unit_scale=True, unit_divisor=1024)

    def restart(self, total_bytes: int | None) -> None:
        """Starts, or starts over, towards a total that may be unknown."""
        if self._bar is not None:
            self._bar.reset(total=total_bytes)

    def advance(self, count_bytes: int) -> None:
        """Counts what was transferred since the last call."""
        if self._bar is not None:
            self._bar.update(count_bytes)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
