from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest
from daemon import Daemon
from proxy import proxy_to
from waiting import wait_until

from picod import AsyncPicoDClient, AsyncProcess, AsyncProcessWatch, CommandError, PicoDClient, Process, ProcessWatch
from picod.aio_files import AsyncFileMethods
from picod.files import FileMethods

MANY_BYTES = 4 * 1024 * 1024


def client_of(daemon: Daemon) -> AsyncPicoDClient:
    return AsyncPicoDClient("127.0.0.1", daemon.port, daemon.access_token)


def test_needs_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        AsyncPicoDClient("127.0.0.1")


async def test_calls_run_concurrently(daemon: Daemon, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    async with client_of(daemon) as client:
        await client.execute_command(f"mkfifo {fifo}")
        # Each end of a FIFO waits for the other one.
        met, wrote = await asyncio.gather(
            client.execute_command(f"cat {fifo}"),
            client.execute_command(f"echo met > {fifo}"),
        )
    assert (met, wrote) == ("met\n", "")


async def test_cancelling_a_task_kills_its_command(daemon: Daemon, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    async with client_of(daemon) as client:
        task = asyncio.create_task(client.execute(f"echo $$ > {pid_file}; sleep 60", timeout=0))
        await asyncio.to_thread(wait_until, lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: not Path(f"/proc/{int(pid_file.read_text())}").exists())


@pytest.mark.parametrize("direction", ["upload", "download"])
async def test_cancelling_a_transfer_leaves_no_trace(daemon: Daemon, tmp_path: Path, direction: str) -> None:
    large, target = tmp_path / "large", tmp_path / "target"
    with large.open("wb") as file:
        file.truncate(2 << 30)
    with proxy_to(daemon.port) as proxy:
        client = AsyncPicoDClient("127.0.0.1", proxy.port, daemon.access_token)
        transfer = (
            client.upload_file(large, str(target), checksum=False)
            if direction == "upload"
            else client.download_file(str(large), target)
        )
        task = asyncio.create_task(transfer)
        await asyncio.to_thread(wait_until, lambda: proxy.forwarded_bytes > MANY_BYTES)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, lambda: list(tmp_path.iterdir()) == [large])
        await client.close()


async def test_local_files_are_not_touched_in_the_loop(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()

    def note_thread(self: object, offset: int, chunk: bytes) -> None:
        threads.add(threading.current_thread())

    monkeypatch.setattr("picod.download.Destination.write_at", note_thread)
    async with client_of(daemon) as client:
        await client.download_file("/etc/passwd", tmp_path / "copy")
    assert threads
    assert threading.current_thread() not in threads


async def test_errors_of_commands_reach_the_awaiting_task(daemon: Daemon) -> None:
    async with client_of(daemon) as client:
        with pytest.raises(CommandError, match="code 4"):
            await client.execute_command("exit 4")


def public_methods(cls: type) -> dict[str, str]:
    """Names and signatures, those of properties too; the asynchronous twin of a type counts as the type."""
    functions = {
        name: value.fget if isinstance(value, property) else value
        for name, value in vars(cls).items()
        if not name.startswith("_") or name in ("__repr__", "__init__")
    }
    return {name: str(inspect.signature(value)).replace("Async", "") for name, value in functions.items() if value is not None}


def test_both_clients_have_the_same_methods() -> None:
    assert public_methods(AsyncPicoDClient) == public_methods(PicoDClient)
    assert public_methods(AsyncFileMethods) == public_methods(FileMethods)


@pytest.mark.parametrize(("asynchronous", "blocking"), [(AsyncProcess, Process), (AsyncProcessWatch, ProcessWatch)])
def test_the_objects_of_both_clients_have_the_same_methods(asynchronous: type, blocking: type) -> None:
    assert public_methods(asynchronous) == public_methods(blocking)
