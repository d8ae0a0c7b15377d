"""Uploads and downloads that go on after cuts, and after a daemon that was killed and started anew."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import Proxy, proxy_to
from waiting import wait_until

from picod import (
    AlreadyExistsError,
    AsyncPicoDClient,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PendingUpload,
    PermissionDeniedError,
    PicoDClient,
    RetryPolicy,
    UnavailableError,
)
from picod.file_upload import missing_ranges, split_ranges

MIB = 1024 * 1024
SIZE = 300 * MIB
MEDIUM_SIZE = 80 * MIB
PATIENT = RetryPolicy(attempts=30, initial_backoff_seconds=0.05, max_backoff_seconds=1)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from made(tmp_path_factory.mktemp("large") / "source", SIZE)


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from made(tmp_path_factory.mktemp("medium") / "source", MEDIUM_SIZE)


def made(path: Path, size: int) -> Iterator[Path]:
    with path.open("wb") as file:
        block = random.Random(5).randbytes(MIB)
        for number in range(size // MIB):
            file.write(number.to_bytes(8, "big") + block[8:])
    yield path
    path.unlink()


def same(one: Path, other: Path) -> bool:
    with one.open("rb") as first, other.open("rb") as second:
        while True:
            chunk = first.read(MIB)
            if chunk != second.read(MIB):
                return False
            if not chunk:
                return True


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def cut_at(proxy: Proxy, *positions: int) -> Callable[[], None]:
    def cut() -> None:
        for position in positions:
            wait_until(lambda position=position: proxy.forwarded_bytes > position, 60)  # type: ignore[misc]
            proxy.cut()

    return cut


@pytest.mark.parametrize("parts", [1, 3])
def test_an_upload_goes_on_after_cuts(daemon: Daemon, connect: Connect, medium: Path, tmp_path: Path, parts: int) -> None:
    remote = tmp_path / "remote"
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        with meanwhile(cut_at(proxy, 20 * MIB, 60 * MIB)):
            entry = client.upload_file(medium, str(remote), parts=parts)
        assert entry.size == MEDIUM_SIZE
        assert proxy.connections == 3
        # What had arrived was not sent again.
        assert proxy.forwarded_bytes < MEDIUM_SIZE * 1.2
    assert same(medium, remote)
    assert os.listdir(tmp_path) == ["remote"]
    remote.unlink()


@pytest.mark.parametrize("parts", [1, 3])
def test_a_download_goes_on_after_cuts(daemon: Daemon, connect: Connect, medium: Path, tmp_path: Path, parts: int) -> None:
    copy = tmp_path / "copy"
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        with meanwhile(cut_at(proxy, 20 * MIB, 60 * MIB)):
            client.download_file(str(medium), copy, parts=parts)
        assert proxy.connections == 3
        assert proxy.forwarded_bytes < MEDIUM_SIZE * 2
    assert same(medium, copy)
    assert os.listdir(tmp_path) == ["copy"]
    copy.unlink()


@pytest.mark.parametrize("direction", ["up", "down"])
def test_goes_on_with_a_daemon_that_was_killed(connect: Connect, large: Path, tmp_path: Path, direction: str) -> None:
    target = tmp_path / "target"
    with ExitStack() as stack:
        first = stack.enter_context(running_daemon())
        client = connect("127.0.0.1", first.port, first.access_token, retry=PATIENT)
        seen = threading.Event()

        def restart() -> None:
            assert seen.wait(60)
            first.kill()
            stack.enter_context(running_daemon(port=first.port, access_token=first.access_token))

        def progress(done: int, total: int | None) -> None:
            assert total == SIZE
            if done > SIZE // 3:
                seen.set()

        with meanwhile(restart):
            if direction == "up":
                client.upload_file(large, str(target), progress=progress)
            else:
                client.download_file(str(large), target, progress=progress)
        assert same(large, target)
    target.unlink()


def test_a_commit_whose_answer_was_lost_is_found(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    source.write_bytes(b"x" * 1000)
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        client.stat("/")
        done = False

        def progress(done_bytes: int, total: int | None) -> None:
            nonlocal done
            if done_bytes == total and not done:
                done = True
                # Loses the answer of WriteFile or of CommitUpload, whichever comes first.
                proxy.lose_next_answer()

        entry = client.upload_file(source, str(remote), must_not_exist=True, progress=progress)
        assert entry.size == 1000
    assert remote.read_bytes() == b"x" * 1000


def test_preconditions(client: PicoDClient, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    source.write_text("new")
    entry = client.upload_file(source, str(remote), must_not_exist=True, sync=True)
    with pytest.raises(AlreadyExistsError):
        client.upload_file(source, str(remote), must_not_exist=True)
    client.upload_file(source, str(remote), if_etag=entry.etag)
    with pytest.raises(FailedPreconditionError):
        client.upload_file(source, str(remote), if_etag=entry.etag)
    assert client.list_uploads() == []
    client.download_file(str(remote), tmp_path / "copy", sync=True)
    assert (tmp_path / "copy").read_text() == "new"


def test_progress_is_told(client: PicoDClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(20 * MIB))
    told: list[tuple[int, int | None]] = []
    client.upload_file(source, str(tmp_path / "remote"), progress=lambda *counts: told.append(counts))
    assert told[0] == (0, 20 * MIB)
    assert told[-1] == (20 * MIB, 20 * MIB)
    assert told == sorted(told)
    told.clear()
    client.download_file(str(tmp_path / "remote"), tmp_path / "copy", progress=lambda *counts: told.append(counts), parts=2)
    assert told[-1] == (20 * MIB, 20 * MIB)


def test_a_download_is_of_one_version(client: PicoDClient, tmp_path: Path) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    remote.write_bytes(b"a" * (40 * MIB))
    replaced = False

    def progress(done: int, total: int | None) -> None:
        nonlocal replaced
        if done > 8 * MIB and not replaced:
            replaced = True
            (tmp_path / "next").write_bytes(b"b" * (33 * MIB))
            (tmp_path / "next").replace(remote)

    client.download_file(str(remote), copy, progress=progress)
    content = copy.read_bytes()
    assert content == b"b" * (33 * MIB)


@pytest.mark.parametrize("size", [8 * MIB, 40 * MIB])
def test_a_download_is_not_of_two_versions_of_one_inode(client: PicoDClient, tmp_path: Path, size: int) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    remote.write_bytes(b"a" * size)
    rewritten = False

    def progress(done: int, total: int | None) -> None:
        nonlocal rewritten
        if done > size // 4 and not rewritten:
            rewritten = True
            with remote.open("r+b") as file:
                file.write(b"b" * size)

    client.download_file(str(remote), copy, progress=progress)
    assert copy.read_bytes() == b"b" * size


def test_a_log_that_is_written_can_be_downloaded(client: PicoDClient, tmp_path: Path) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    remote.write_bytes(b"a" * (40 * MIB))
    written: list[int | None] = []
    with remote.open("ab", buffering=0) as log:
        client.download_file(str(remote), copy, progress=lambda *_: written.append(log.write(b"a")))
    assert 40 * MIB <= copy.stat().st_size <= remote.stat().st_size


def test_files_of_proc(client: PicoDClient, tmp_path: Path) -> None:
    client.download_file("/proc/version", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == Path("/proc/version").read_bytes()


def test_a_final_failure_leaves_nothing(connect: Connect, daemon: Daemon, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    with source.open("wb") as file:
        file.truncate(SIZE)
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=None)
        with meanwhile(cut_at(proxy, 20 * MIB)), pytest.raises(UnavailableError):
            client.upload_file(source, str(remote), checksum=False)
    wait_until(lambda: os.listdir(tmp_path) == ["source"])
    assert connect("127.0.0.1", daemon.port, daemon.access_token).list_uploads() == []


def test_pending_uploads_are_listed_and_aborted(connect: Connect, daemon: Daemon, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(64 * MIB)
    client = connect("127.0.0.1", daemon.port, daemon.access_token)
    other = connect("127.0.0.1", daemon.port, daemon.access_token)
    found: list[PendingUpload] = []

    def progress(done: int, total: int | None) -> None:
        if done > 32 * MIB and not found:
            found.extend(PicoDClient("127.0.0.1", daemon.port, daemon.access_token).list_uploads())
            PicoDClient("127.0.0.1", daemon.port, daemon.access_token).abort_upload(found[0].id)

    with pytest.raises(NotFoundError):
        client.upload_file(source, str(tmp_path / "remote"), progress=progress)
    assert found[0].path == str(tmp_path / "remote")
    assert found[0].received[0][0] == 0
    assert found[0].created_at < found[0].expires_at
    with pytest.raises(NotFoundError):
        other.abort_upload(found[0].id)


@pytest.mark.skipif(os.getuid() != 0, reason="acts as another user")
def test_what_a_user_may_not_write(client: PicoDClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("x")
    with pytest.raises(PermissionDeniedError) as caught:
        client.upload_file(source, f"{tmp_path}/remote", user="65534")
    assert caught.value.metadata["path"].startswith(str(tmp_path.parents[2]))
    with pytest.raises(InvalidArgumentError):
        client.upload_file(source, "", user="65534")


async def test_a_cancelled_task_ends_its_transfers(daemon: Daemon, large: Path, tmp_path: Path) -> None:
    async with AsyncPicoDClient("127.0.0.1", daemon.port, daemon.access_token) as client:
        for up in (True, False):
            begun = threading.Event()

            def progress(done: int, total: int | None, begun: threading.Event = begun) -> None:
                if done:
                    begun.set()

            if up:
                task = asyncio.create_task(client.upload_file(large, f"{tmp_path}/remote", progress=progress))
            else:
                task = asyncio.create_task(client.download_file(str(large), tmp_path / "copy", progress=progress))  # type: ignore[arg-type]
            assert await asyncio.to_thread(begun.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert os.listdir(tmp_path) == []
        assert await client.list_uploads() == []


def test_what_is_missing() -> None:
    assert missing_ranges([], 10) == [(0, 10)]
    assert missing_ranges([(0, 3), (5, 7)], 10) == [(3, 5), (7, 10)]
    assert missing_ranges([(0, 10)], 10) == []
    assert split_ranges([(0, 10)], 3, 1) == [(0, 4), (4, 8), (8, 10)]
    assert split_ranges([(2, 4), (6, 10)], 1, 4) == [(2, 4), (6, 10)]
