"""From the result of a command to its stdout, or to the exception that says why there is none."""

from __future__ import annotations

from .errors import CommandError, CommandTimeoutError, OutputTruncatedError
from .results import ExecuteResult, OutcomeReason


def stdout_of(result: ExecuteResult, command: str) -> str:
    """Returns the whole stdout of a command that succeeded.

    Raises:
        CommandTimeoutError: Its time was up.
        CommandError: It failed otherwise.
        OutputTruncatedError: It succeeded, but part of its stdout was left out.
    """
    if result.outcome.reason is OutcomeReason.TIMED_OUT:
        raise CommandTimeoutError(result, command)
    if not result.ok:
        raise CommandError(result, command)
    if result.stdout_summary.omitted_bytes:
        raise OutputTruncatedError(result, command)
    return result.stdout
