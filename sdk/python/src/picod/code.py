"""How a piece of code reaches its interpreter: on standard input.

No quoting, no limit of the argument list, no file in the sandbox. Code that does not fit into one message travels as a file which
a small shell script opens and unlinks before it starts the interpreter.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from .commands import stdout_of
from .errors import InterpreterNotFoundError
from .requests import to_bytes
from .results import ExecuteResult, OutcomeReason

_EXIT_NOT_FOUND = 127

# The daemon takes messages of 4 MiB; the rest is room for env and the like.
_MAX_STDIN_BYTES = 3 * 1024 * 1024

# A shell that reads its script from stdin would hand the rest of the script to the commands it runs; so read it whole first.
_EVAL_STDIN = 'eval "$(cat)"'

# Python without buffers, so that a timeout does not swallow what was printed before.
_PYTHON = (("python3", "-u", "-"), ("python", "-u", "-"))
_NODE = (("node", "-"), ("nodejs", "-"))
_INTERPRETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "python": _PYTHON,
    "bash": (("bash", "-c", _EVAL_STDIN, "bash"),),
    "sh": (("sh", "-c", _EVAL_STDIN, "sh"),),
    "node": _NODE,
    "javascript": _NODE,
}

# The path on stderr says "no such interpreter": it is random, so no program prints it by chance.
_START_FROM_FILE = """
path=$1; shift
command -v -- "$1" >/dev/null || { printf %s "$path" >&2; exit 127; }
exec 3<"$path" && rm -f -- "$path" && exec "$@" <&3 3<&-
"""


@dataclass(frozen=True)
class Program:
    """Code, how it travels, and the command lines that could run it."""

    label: str
    """What to call it in errors."""
    source: bytes
    interpreters: tuple[tuple[str, ...], ...]
    """Command lines that read the program from stdin, the preferred one first."""
    remote_path: str | None
    """Where to put the source first; None when it fits on stdin."""

    @property
    def stdin(self) -> bytes:
        """What to hand to Execute."""
        return b"" if self.remote_path else self.source

    def command_lines(self) -> Iterator[tuple[str, ...]]:
        """Yields what to execute, one candidate after the other."""
        for argv in self.interpreters:
            yield ("/bin/sh", "-c", _START_FROM_FILE, "sh", self.remote_path, *argv) if self.remote_path else argv

    def interpreter_missing(self, result: ExecuteResult) -> bool:
        """Nothing ran: another candidate may be tried."""
        if result.exit_code != _EXIT_NOT_FOUND:
            return False
        return result.outcome.reason is OutcomeReason.SPAWN_FAILED or result.stderr == self.remote_path

    def output_of(self, result: ExecuteResult) -> str:
        """Returns the stdout of the run or raises as `stdout_of` does, and `InterpreterNotFoundError`."""
        if self.interpreter_missing(result):
            raise InterpreterNotFoundError(result, " or ".join(argv[0] for argv in self.interpreters))
        return stdout_of(result, self.label)


def resolve_program(language: str, code: str, interpreter: str | None) -> Program:
    """Chooses interpreters and the way to carry the code.

    Raises:
        ValueError: The language is not one of those that `run_code` knows.
    """
    interpreters = _INTERPRETERS.get(language.lower())
    if interpreters is None:
        raise ValueError(f"unsupported language {language!r}: use one of {', '.join(sorted(_INTERPRETERS))}")
    if interpreter is not None:
        interpreters = ((interpreter, *interpreters[0][1:]),)
    source = to_bytes(code)
    return Program(
        label=f"{language} code",
        source=source,
        interpreters=interpreters,
        remote_path=f"/tmp/.picod-{secrets.token_hex(8)}" if len(source) > _MAX_STDIN_BYTES else None,  # noqa: S108
    )
