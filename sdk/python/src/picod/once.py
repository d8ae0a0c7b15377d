"""Repeating what takes effect once, however often it arrives at one run of the daemon, and never at another.

The daemon remembers ids, so that a repetition finds what the first attempt began. One that was restarted remembers nothing: every
answer says which run of the daemon it is from, and every attempt which run it is for.
"""

from __future__ import annotations

from collections.abc import Iterable

from .connection import INSTANCE_KEY, Metadata, instance_in
from .errors import DaemonRestartedError, PicoDError, UnavailableError
from .retry import RetryPolicy

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
"""Cheap, and answered without a token. Its request is empty."""

_INSTANCE_CHANGED = "INSTANCE_CHANGED"
_SHUTTING_DOWN = "SHUTTING_DOWN"
# How gRPC begins when it has no connection to send anything over.
_NEVER_SENT = ("failed to connect to all addresses", "DNS resolution failed")
# A daemon that is another one each time is several behind one address.
_MAX_CHANGES = 3


class Instance:
    """The run of the daemon that a client talks to."""

    def __init__(self) -> None:
        self.id: str | None = None
        """None: nothing was heard of it yet; empty: it does not say."""

    def hear(self, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        """Takes it from an answer."""
        self.id = instance_in(metadata)


class Once:
    """The attempts of one call, which go to no other run of the daemon than the first that may have begun with it."""

    def __init__(self, instance: Instance, retry: RetryPolicy) -> None:
        self._instance = instance
        self._delays = retry.delays_seconds()
        self._expected: str | None = None
        self._may_have_begun = False
        self._changes = 0

    @property
    def must_ask(self) -> bool:
        """Before the next attempt the daemon must be asked which run it is."""
        return self._expected is None and self._instance.id is None

    def metadata(self) -> Metadata:
        """Returns what says, in the next attempt, for which run it is."""
        if self._expected is None:
            self._expected = self._instance.id
        return ((INSTANCE_KEY, self._expected),) if self._expected else ()

    def seconds_after(self, error: PicoDError) -> float:
        """Returns how long to wait before the next attempt.

        Raises:
            DaemonRestartedError: The next attempt might do again what this one did.
            PicoDError: The error itself: repeating does not help, or the attempts are used up.
        """
        if error.reason == _INSTANCE_CHANGED:
            return self._go_to(error)
        # Before it is known whom to ask, the attempt was a question.
        if self._expected is not None and not _never_began(error):
            self._may_have_begun = True
        can_tell = bool(self._expected) or not self._may_have_begun
        delay_seconds = next(self._delays, None) if isinstance(error, UnavailableError) and can_tell else None
        if delay_seconds is None:
            raise error
        return delay_seconds

    def _go_to(self, error: PicoDError) -> float:
        """The daemon was restarted before the call began: it begins there."""
        if self._may_have_begun:
            raise DaemonRestartedError from error
        self._changes += 1
        if self._changes > _MAX_CHANGES or not error.instance:
            raise error
        self._expected = self._instance.id = error.instance
        return 0


def _never_began(error: PicoDError) -> bool:
    """The daemon did not get the call, or refused to begin with it."""
    return error.reason == _SHUTTING_DOWN or error.message.startswith(_NEVER_SENT)
