"""Long-lived processes over connections that break, fall silent, or lose answers."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import Proxy, proxy_to
from waiting import wait_until

from picod import (
    AsyncPicoDClient,
    CancelledError,
    DaemonRestartedError,
    DeadlineExceededError,
    NotFoundError,
    OutputOffsets,
    PicoDClient,
    ProcessEventKind,
    RetryPolicy,
    UnavailableError,
)

MIB = 1024 * 1024
PATIENT = RetryPolicy(attempts=200, initial_backoff_seconds=0.02, max_backoff_seconds=0.1)
LOST_ANSWERS = 15


@pytest.fixture
def proxy(daemon: Daemon) -> Iterator[Proxy]:
    with proxy_to(daemon.port) as proxy:
        yield proxy


@pytest.fixture
def proxied(daemon: Daemon, proxy: Proxy, connect: Connect) -> PicoDClient:
    return connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)


# 16 bytes a line, so that every position says what belongs there.
NUMBERED_LINES = """import sys
for start in range(0, {count}, 4096):
    sys.stdout.write("".join("%015d\\n" % number for number in range(start, start + 4096)))
"""


def numbered(offset: int, length: int) -> bytes:
    first = offset // 16
    text = b"".join(b"%015d\n" % number for number in range(first, (offset + length) // 16 + 1))
    return text[offset - 16 * first :][:length]


def test_every_byte_arrives_once_or_is_reported_while_connections_break(proxied: PicoDClient, proxy: Proxy) -> None:
    total = 16 * 1_048_576
    program = NUMBERED_LINES.format(count=total // 16)
    position = cuts = 0
    process = proxied.start(argv=["python3", "-c", program])
    for output in process:
        assert output.offset == position + output.trimmed_bytes
        assert output.data == numbered(output.offset, len(output.data))
        position = output.end
        if position > cuts * MIB:
            proxy.cut()
            cuts += 1
    assert position == total
    assert cuts > 1
    assert proxy.connections > 2
    assert process.result is not None
    assert process.result.ok


def test_a_reader_with_backpressure_loses_nothing_however_much_it_is(proxied: PicoDClient, proxy: Proxy) -> None:
    line = "0123456789" * 6 + "\n"
    expected = line.encode() * 8192
    position = cuts = 0
    process = proxied.start(f"yes {line.strip()} | head -c 100000000", backpressure=True)
    for output in process:
        start = position % len(line)
        assert (output.offset, output.trimmed_bytes) == (position, 0)
        assert output.data == expected[start : start + len(output.data)]
        position = output.end
        if position > (cuts + 1) * 25_000_000:
            proxy.cut()
            cuts += 1
    assert (position, cuts) == (100_000_000, 3)
    assert proxy.connections > cuts


def test_closing_a_reader_lets_the_process_go(client: PicoDClient) -> None:
    process = client.start("head -c 20000000 /dev/zero", backpressure=True)
    next(process)
    process.close()
    assert process.wait(timeout=20).ok


# Prints half a MiB for each line that it is given: never more than the daemon keeps, so nothing may be missing.
PIECEWISE = """import random, sys
random.seed(1)
for line in sys.stdin:
    sys.stdout.buffer.write(random.randbytes(1 << 19))
    sys.stdout.buffer.flush()
"""
PIECES = 20


def test_nothing_is_lost_or_typed_twice_over_connections_that_break(proxied: PicoDClient, proxy: Proxy) -> None:
    process = proxied.start(argv=["python3", "-c", PIECEWISE], stdin=True, backpressure=True)
    done = threading.Event()

    def cut_again_and_again() -> None:
        while not done.wait(0.05):
            proxy.cut()

    thread = threading.Thread(target=cut_again_and_again)
    thread.start()
    digest = hashlib.sha256()
    size = 0
    process.write("go\n")
    for output in process:
        digest.update(output.data)
        size += len(output.data)
        assert output.trimmed_bytes == 0
        if size == PIECES << 19:
            process.close_input()
        elif size % (1 << 19) == 0:
            process.write("go\n")
    done.set()
    thread.join()
    generator = random.Random(1)
    expected = b"".join(generator.randbytes(1 << 19) for _ in range(PIECES))
    assert size == len(expected)
    assert digest.hexdigest() == hashlib.sha256(expected).hexdigest()
    assert proxy.connections > 3


def test_a_start_whose_answer_was_lost_is_not_started_twice(proxied: PicoDClient, proxy: Proxy, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number in range(LOST_ANSWERS):
        proxied.stat("/")
        proxy.lose_next_answer()
        process = proxied.start(f"echo run >> {runs}; echo {number}")
        assert "".join(process.text()) == f"{number}\n"
        assert runs.read_text() == "run\n" * (number + 1)
    assert proxy.connections > LOST_ANSWERS


def test_input_whose_answer_was_lost_is_not_typed_twice(proxied: PicoDClient, proxy: Proxy) -> None:
    process = proxied.start("cat", stdin=True)
    for number in range(LOST_ANSWERS):
        proxied.stat("/")
        proxy.lose_next_answer()
        process.write(f"line {number}\n")
    process.close_input()
    assert "".join(process.text()) == "".join(f"line {number}\n" for number in range(LOST_ANSWERS))
    assert proxy.connections > LOST_ANSWERS


def test_two_writers_type_every_piece_once_over_connections_that_break(
    daemon: Daemon, proxied: PicoDClient, proxy: Proxy, connect: Connect
) -> None:
    process = proxied.start("cat", stdin=True)
    pieces = [[f"{writer}:{number}:{'x' * 500}\n" for number in range(60)] for writer in range(2)]
    writers = [process, connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT).attach(process.id)]

    def write(writer: int) -> None:
        for piece in pieces[writer]:
            writers[writer].write(piece)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        proxy.cut()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    process.close_input()
    assert sorted("".join(process.text()).splitlines(True)) == sorted(piece for each in pieces for piece in each)
    assert proxy.connections > 3


def test_wait_goes_on_when_the_connection_breaks(proxied: PicoDClient, proxy: Proxy) -> None:
    process = proxied.start("sleep 0.5; exit 3")
    timer = threading.Timer(0.2, proxy.cut)
    timer.start()
    assert process.wait(timeout=20).exit_code == 3
    timer.join()


def test_a_silent_connection_is_left(daemon: Daemon, proxy: Proxy, connect: Connect) -> None:
    client = connect("127.0.0.1", proxy.port, daemon.access_token, keepalive_interval=1.0)
    process = client.start("echo 1; read line; echo $line", stdin=True)
    assert next(process).data == b"1\n"
    proxy.stall()
    other = connect("127.0.0.1", daemon.port, daemon.access_token)
    other.attach(process.id).write("typed\n")
    started = time.monotonic()
    assert "".join(process.text()) == "typed\n"
    assert 2 < time.monotonic() - started < 10
    assert proxy.connections == 2


def test_keepalives_keep_a_quiet_process_connected(daemon: Daemon, proxy: Proxy, connect: Connect) -> None:
    client = connect("127.0.0.1", proxy.port, daemon.access_token, keepalive_interval=1.0, retry=None)
    process = client.start("sleep 4; echo end")
    assert "".join(process.text()) == "end\n"
    assert proxy.connections == 1
    with pytest.raises(ValueError, match="keepalive_interval"):
        connect("127.0.0.1", daemon.port, keepalive_interval=0.5)


def test_a_slow_reader_is_not_taken_for_a_dead_connection(daemon: Daemon, proxy: Proxy, connect: Connect) -> None:
    client = connect("127.0.0.1", proxy.port, daemon.access_token, keepalive_interval=1.0, retry=None)
    process = client.start("for n in 1 2 3; do echo $n; sleep 0.1; done")
    texts = process.text()
    seen = next(texts)
    time.sleep(3)
    assert seen + "".join(texts) == "1\n2\n3\n"
    assert proxy.connections == 1


def test_the_attempts_are_bounded_and_nothing_is_lost_by_them(daemon: Daemon, connect: Connect) -> None:
    policy = RetryPolicy(attempts=3, initial_backoff_seconds=0.01, max_backoff_seconds=0.01)
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=policy)
        process = client.start("echo 1; read line; echo 2", stdin=True)
        assert next(process).data == b"1\n"
        port = proxy.port
    with pytest.raises(UnavailableError):
        next(process)
    for call in (process.info, process.wait, lambda: process.write("x"), client.watch_processes):
        with pytest.raises(UnavailableError):
            call()
    connect("127.0.0.1", daemon.port, daemon.access_token).attach(process.id).write("\n")
    with proxy_to(daemon.port, port=port):
        wait_until(lambda: reachable(client))
        assert [output.data for output in process] == [b"2\n"]


def reachable(client: PicoDClient) -> bool:
    try:
        return client.stat("/").path == "/"
    except UnavailableError:
        return False


def test_a_restarted_daemon_is_not_taken_for_the_old_one(connect: Connect) -> None:
    with running_daemon() as old:
        client = connect("127.0.0.1", old.port, old.access_token, retry=PATIENT)
        process = client.start("echo 1; sleep 60")
        assert next(process).data == b"1\n"
        watch = client.watch_processes()
        old.kill()
        with running_daemon(port=old.port, access_token=old.access_token):
            for call in (lambda: next(process), process.wait, process.info):
                with pytest.raises(NotFoundError):
                    call()
            event = next(watch)
            assert (event.kind, event.process_id) == (ProcessEventKind.DELETED, process.id)
            watch.close()


def test_a_watch_misses_nothing_while_the_connection_breaks(
    daemon: Daemon, proxied: PicoDClient, proxy: Proxy, connect: Connect
) -> None:
    direct = connect("127.0.0.1", daemon.port, daemon.access_token)
    ended, deleted = direct.start("read line", stdin=True), direct.start("true")
    deleted.wait()
    with proxied.watch_processes() as watch:
        proxy.cut()
        ended.close_input()
        ended.wait()
        deleted.delete()
        started = direct.start("true")
        started.wait()
        expected = {
            (ended.id, ProcessEventKind.ENDED),
            (deleted.id, ProcessEventKind.DELETED),
            (started.id, ProcessEventKind.STARTED),
            (started.id, ProcessEventKind.ENDED),
        }
        seen: list[tuple[str, ProcessEventKind]] = []
        while not expected <= set(seen):
            event = next(watch)
            seen.append((event.process_id, event.kind))
        assert len(seen) == len(set(seen))


@pytest.mark.parametrize("own_id", [False, True])
def test_a_command_whose_connection_breaks_runs_once(
    daemon: Daemon, proxy: Proxy, connect: Connect, tmp_path: Path, own_id: bool
) -> None:
    runs = tmp_path / "runs"
    client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
    command_id = f"once-{os.urandom(6).hex()}" if own_id else ""

    def cut() -> None:
        wait_until(runs.exists)
        proxy.cut()

    thread = threading.Thread(target=cut)
    thread.start()
    assert client.execute(f"echo run >> {runs}; sleep 0.5; echo end", id=command_id).stdout == "end\n"
    thread.join()
    assert proxy.connections == 2
    assert runs.read_text() == "run\n"


def test_a_command_is_not_run_again_by_a_daemon_that_was_restarted(connect: Connect, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with running_daemon() as old:
        client = connect("127.0.0.1", old.port, old.access_token, retry=PATIENT)
        restarted = threading.Event()

        def restart() -> None:
            wait_until(runs.exists)
            old.kill()
            with running_daemon(port=old.port, access_token=old.access_token):
                restarted.wait(60)

        thread = threading.Thread(target=restart)
        thread.start()
        with pytest.raises(DaemonRestartedError, match="unknown whether") as raised:
            client.execute(f"echo run >> {runs}; sleep 60")
        assert (raised.value.reason, runs.read_text()) == ("INSTANCE_CHANGED", "run\n")
        assert client.execute("echo again").stdout == "again\n"
        restarted.set()
        thread.join()


def test_calls_go_to_a_daemon_that_was_restarted_before_them(connect: Connect) -> None:
    with running_daemon() as first:
        client = connect("127.0.0.1", first.port, first.access_token, retry=PATIENT)
        assert client.execute("echo 1").stdout == "1\n"
        first.kill()
        results: list[str] = []
        # It asks while there is no daemon.
        thread = threading.Thread(target=lambda: results.append(client.execute("echo 2").stdout))
        thread.start()
        with running_daemon(port=first.port, access_token=first.access_token) as second:
            thread.join()
            assert results == ["2\n"]
            second.kill()
            again = running_daemon(port=first.port, access_token=first.access_token)
            with again, client.start("cat", stdin=True) as process:
                process.write("typed")
                process.close_input()
                assert "".join(process.text()) == "typed"


def test_a_command_with_an_id_runs_until_it_is_stopped(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    pid, command_id = pid_in(tmp_path / "pid"), f"stopped-{os.urandom(6).hex()}"
    client = connect("127.0.0.1", daemon.port, daemon.access_token, execute_slack=0.0)
    with pytest.raises(DeadlineExceededError):
        client.execute(f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 60", timeout=0.3, id=command_id)
    stopped = client.stop_process(command_id, grace=0)
    assert stopped.process is None
    assert not Path(f"/proc/{pid()}").exists()


def pid_in(file: Path) -> Callable[[], int]:
    def read() -> int:
        return int(file.read_text()) if file.exists() and file.read_text().endswith("\n") else 0

    return read


INTERRUPTED = """
import sys
from picod import PicoDClient

with PicoDClient("127.0.0.1", int(sys.argv[1])) as client:
    client.execute_command(f"echo $$ > {sys.argv[2]}; sleep 60", timeout=0)
"""


def test_an_interrupt_ends_a_command_that_would_be_repeated(daemon: Daemon, tmp_path: Path) -> None:
    pid = pid_in(tmp_path / "pid")
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(daemon.port), str(tmp_path / "pid")],
        env={**os.environ, "PICOD_ACCESS_TOKEN": daemon.access_token},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: pid() > 0)
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=20)[1].rstrip().endswith("KeyboardInterrupt")
    wait_until(lambda: not Path(f"/proc/{pid()}").exists())


def test_close_ends_a_command_that_would_be_repeated(daemon: Daemon, tmp_path: Path) -> None:
    pid = pid_in(tmp_path / "pid")
    client = PicoDClient("127.0.0.1", daemon.port, daemon.access_token)

    def execute() -> None:
        with pytest.raises(CancelledError):
            client.execute(f"echo $$ > {tmp_path}/pid; sleep 60", timeout=0)

    thread = threading.Thread(target=execute)
    thread.start()
    wait_until(lambda: pid() > 0)
    client.close()
    thread.join()
    wait_until(lambda: not Path(f"/proc/{pid()}").exists())


async def test_cancelling_a_task_ends_a_command_that_would_be_repeated(daemon: Daemon, tmp_path: Path) -> None:
    pid = pid_in(tmp_path / "pid")
    async with AsyncPicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client:
        task = asyncio.create_task(client.execute(f"echo $$ > {tmp_path}/pid; sleep 60", timeout=0))
        await asyncio.to_thread(wait_until, lambda: pid() > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: not Path(f"/proc/{pid()}").exists())


async def test_cancelling_a_task_that_reads_loses_nothing(daemon: Daemon) -> None:
    async with AsyncPicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client:
        process = await client.start("for n in $(seq 20); do echo $n; sleep 0.02; done")
        seen = b""
        while process.result is None:
            try:
                async for output in process:
                    seen += output.data
                    if len(seen) % 3 == 0:
                        break
                else:
                    break
                task = asyncio.ensure_future(process.__anext__())
                await asyncio.sleep(0.005)
                task.cancel()
                seen += (await task).data
            except (asyncio.CancelledError, StopAsyncIteration):
                continue
        assert seen == b"".join(b"%d\n" % number for number in range(1, 21))
        assert process.offsets == OutputOffsets(stdout=len(seen))


async def test_leaving_an_async_context_stops_the_process(daemon: Daemon) -> None:
    async with AsyncPicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client:

        async def serve() -> None:
            async with await client.start("echo ready; sleep 60", id=process_id) as process:
                async for _ in process:
                    ready.set()

        process_id, ready = f"async-{os.urandom(6).hex()}", asyncio.Event()
        task = asyncio.create_task(serve())
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.get_process(process_id)).ended_at is not None
