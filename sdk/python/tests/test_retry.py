from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import proxy_to
from waiting import wait_until

from picod import PicoDClient, RetryPolicy, UnavailableError

MANY_BYTES = 4 * 1024 * 1024
PATIENT = RetryPolicy(attempts=200, initial_backoff_seconds=0.05, max_backoff_seconds=0.1)


@contextmanager
def unavailable_port() -> Iterator[tuple[int, threading.Event]]:
    """A port that hangs up on whoever connects; the event says that somebody did."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tried = threading.Event()

        def hang_up() -> None:
            try:
                while True:
                    listener.accept()[0].close()
                    tried.set()
            except OSError:
                return

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            yield listener.getsockname()[1], tried
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_stat_waits_for_a_daemon_that_comes_up_later(connect: Connect) -> None:
    sizes: list[int] = []
    with unavailable_port() as (port, tried):
        client = connect("127.0.0.1", port, "token", retry=PATIENT)
        thread = threading.Thread(target=lambda: sizes.append(client.stat("/etc/passwd").size))
        thread.start()
        assert tried.wait(20)
    with running_daemon(port=port, access_token="token"):
        thread.join(20)
    assert sizes == [Path("/etc/passwd").stat().st_size]


def test_the_retries_are_bounded_and_can_be_disabled(connect: Connect) -> None:
    with unavailable_port() as (port, _):
        for retry in (RetryPolicy(attempts=3, initial_backoff_seconds=0.01), None):
            client = connect("127.0.0.1", port, "", retry=retry)
            with pytest.raises(UnavailableError):
                client.stat("/")
            with pytest.raises(UnavailableError):
                client.read_file("/etc/passwd")


def test_the_backoff_doubles_up_to_its_bound() -> None:
    policy = RetryPolicy(attempts=5, initial_backoff_seconds=1, max_backoff_seconds=3)
    for delay, backoff in zip(policy.delays_seconds(), [1, 2, 3, 3]):
        assert backoff / 2 <= delay <= backoff
    assert len(list(policy.delays_seconds())) == 4
    assert not list(RetryPolicy(attempts=1).delays_seconds())
    with pytest.raises(ValueError, match="attempts"):
        RetryPolicy(attempts=0)


def cut_when_started(client: PicoDClient, cut: threading.Thread, command: str) -> None:
    cut.start()
    with pytest.raises(UnavailableError):
        client.execute(command)
    cut.join()


def test_a_command_that_is_not_to_be_repeated_is_not(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, repeat_commands=False)

        def cut() -> None:
            wait_until(runs.exists)
            proxy.cut()

        cut_when_started(client, threading.Thread(target=cut), f"echo run >> {runs}; sleep 60")
        # Goes over the new connection; a repetition would have come with or before it.
        assert client.stat("/").path == "/"
        assert proxy.connections == 2
        assert runs.read_text() == "run\n"


def test_a_daemon_that_dies_during_a_download_leaves_the_old_file(connect: Connect, tmp_path: Path) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    copy.write_text("old")
    with remote.open("wb") as file:
        file.truncate(1 << 40)
    with running_daemon() as daemon:
        client = connect("127.0.0.1", daemon.port, daemon.access_token, retry=None)

        def kill() -> None:
            wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(".picod-*.part")))
            daemon.kill()

        thread = threading.Thread(target=kill)
        thread.start()
        with pytest.raises(UnavailableError):
            client.download_file(str(remote), copy)
        thread.join()
    assert copy.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "remote"]
