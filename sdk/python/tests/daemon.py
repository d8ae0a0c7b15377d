"""Starts and stops the built daemon."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
EXIT_TIMEOUT_SECONDS = 30


@dataclass
class Daemon:
    process: subprocess.Popen[str]
    port: int
    access_token: str
    killed: bool = False

    def kill(self) -> None:
        """Ends it at once, without farewell to its clients."""
        self.killed = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ends it as a supervisor would and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=EXIT_TIMEOUT_SECONDS)


@contextmanager
def running_daemon(*arguments: str, port: int = 0, access_token: str | None = None) -> Iterator[Daemon]:
    """Runs a daemon of its own; a daemon that was not killed meanwhile must shut down with exit code 0."""
    daemon = _start(port, access_token or secrets.token_hex(16), arguments)
    try:
        yield daemon
        if not daemon.killed:
            assert daemon.process.poll() is None, f"the daemon died with exit code {daemon.process.returncode}"
            assert daemon.stop() == 0
    finally:
        daemon.kill()


def _start(port: int, access_token: str, arguments: tuple[str, ...]) -> Daemon:
    executable = Path(os.environ.get("PICOD_BIN") or REPOSITORY / "dist" / "picod")
    if not executable.exists():
        raise RuntimeError(f"no daemon at {executable}: run `npm ci && npm run build` in {REPOSITORY}, or set PICOD_BIN")
    process = subprocess.Popen(
        [str(executable), "--host", "127.0.0.1", "--port", str(port), "--log-format", "json", *arguments],
        env={**os.environ, "PICOD_ACCESS_TOKEN": access_token},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        entry = json.loads(line)
        if entry.get("msg") == "server listening":
            # The rest of the log must be read too, or the daemon waits once the pipe is full.
            threading.Thread(target=_drain, args=(process,), daemon=True).start()
            return Daemon(process, entry["port"], access_token)
    raise RuntimeError(f"the daemon ended with exit code {process.wait()} before it was listening")


def _drain(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    with process.stdout:
        for _ in process.stdout:
            pass
