from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon import Daemon
from proxy import proxy_to
from waiting import wait_until

from picod import CancelledError, PicoDClient, TlsOptions
from picod.connection import resolve_connection


@pytest.mark.parametrize(
    ("host", "target"),
    [("localhost", "localhost:1"), ("10.0.0.1", "10.0.0.1:1"), ("::1", "[::1]:1"), ("[::1]", "[::1]:1")],
)
def test_the_target_of_a_host(host: str, target: str) -> None:
    assert resolve_connection(host, 1, "", False, ()).target == target


def test_no_layer_below_repeats_calls() -> None:
    arguments = dict(resolve_connection("localhost", 1, "", False, ()).arguments)
    assert arguments["grpc.enable_retries"] == 0
    assert arguments["grpc.service_config_disable_resolution"] == 1


def test_channel_arguments_of_the_caller_win() -> None:
    arguments = resolve_connection("localhost", 1, "", False, (("grpc.enable_http_proxy", 0), ("grpc.keepalive_time_ms", 1)))
    assert ("grpc.enable_http_proxy", 0) in arguments.arguments
    assert [value for name, value in arguments.arguments if name == "grpc.keepalive_time_ms"] == [1]


def test_malformed_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="port"):
        PicoDClient("localhost", 0)
    with pytest.raises(ValueError, match="belong together"):
        TlsOptions(client_key=b"")
    with pytest.raises(FileNotFoundError):
        PicoDClient("localhost", tls=TlsOptions(ca=tmp_path / "missing"))


def test_a_client_is_a_context_manager_and_ends_with_it(daemon: Daemon) -> None:
    with PicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client:
        assert client.execute_command("echo 1") == "1\n"
    with pytest.raises(ValueError, match="closed"):
        client.execute_command("echo 2")
    client.close()


def test_a_client_serves_many_threads(daemon: Daemon) -> None:
    with PicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client, ThreadPoolExecutor(16) as pool:
        outputs = list(pool.map(lambda n: client.execute_command(f"echo {n}"), range(64)))
    assert outputs == [f"{n}\n" for n in range(64)]


def test_close_ends_calls_in_flight_and_their_commands(daemon: Daemon, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    client = PicoDClient("127.0.0.1", daemon.port, daemon.access_token)

    def close() -> None:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        client.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(CancelledError):
        client.execute(f"echo $$ > {pid_file}; sleep 60", timeout=0)
    thread.join()
    wait_until(lambda: not Path(f"/proc/{int(pid_file.read_text())}").exists())


MANY_BYTES = 4 * 1024 * 1024

INTERRUPTED = """
import sys
from picod import PicoDClient

with PicoDClient("127.0.0.1", int(sys.argv[1])) as client:
    {call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "client.execute(f'echo $$ > {sys.argv[2]}/started; sleep 60', timeout=0)",
        "client.upload_file(sys.argv[2] + '/source', sys.argv[2] + '/remote', checksum=False)",
    ],
    ids=["execute", "upload"],
)
def test_an_interrupt_ends_the_call(daemon: Daemon, tmp_path: Path, call: str) -> None:
    source, started = tmp_path / "source", tmp_path / "started"
    with source.open("wb") as file:
        file.truncate(2 << 30)
    with proxy_to(daemon.port) as proxy:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED.format(call=call), str(proxy.port), str(tmp_path)],
            env={**os.environ, "PICOD_ACCESS_TOKEN": daemon.access_token},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: proxy.forwarded_bytes > MANY_BYTES or (started.exists() and started.read_text().endswith("\n")))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
        assert stderr.rstrip().endswith("KeyboardInterrupt")
        if started.exists():
            wait_until(lambda: not Path(f"/proc/{int(started.read_text())}").exists())
            started.unlink()
        wait_until(lambda: list(tmp_path.iterdir()) == [source])
