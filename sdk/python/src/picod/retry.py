"""When a call is repeated, and when a connection is taken for dead."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """How often what can be repeated safely is repeated while the daemon is unavailable; the methods say which they are.

    Following output counts anew after each progress.

    Each wait is drawn at random between half of its backoff and all of it.

    Args:
        attempts: Calls at most, the first included; 1 never repeats.
        initial_backoff_seconds: Backoff before the second attempt; each later one doubles it.
        max_backoff_seconds: Upper bound of the backoff.
    """

    attempts: int = 5
    initial_backoff_seconds: float = 0.1
    max_backoff_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.initial_backoff_seconds < 0 or self.max_backoff_seconds < 0:
            raise ValueError(f"attempts must be at least 1 and backoffs not negative: {self}")

    def delays_seconds(self) -> Iterator[float]:
        """Yields the wait before each repetition."""
        backoff = self.initial_backoff_seconds
        for _ in range(self.attempts - 1):
            yield min(backoff, self.max_backoff_seconds) * random.uniform(0.5, 1)  # noqa: S311 (not a secret)
            backoff *= 2


NEVER_RETRY = RetryPolicy(attempts=1)

_MIN_KEEPALIVE_SECONDS, _MAX_KEEPALIVE_SECONDS = 1.0, 30.0
_SILENT_INTERVALS = 2.5


def checked_keepalive(interval_seconds: float) -> float:
    """Returns the interval of keepalives to ask the daemon for.

    Raises:
        ValueError: The daemon would not keep to it.
    """
    if not _MIN_KEEPALIVE_SECONDS <= interval_seconds <= _MAX_KEEPALIVE_SECONDS:
        raise ValueError(f"keepalive_interval must be 1 to 30 seconds: {interval_seconds}")
    return interval_seconds


def silence_seconds(keepalive_interval: float) -> float:
    """How long nothing may arrive on a connection that works."""
    return _SILENT_INTERVALS * keepalive_interval
