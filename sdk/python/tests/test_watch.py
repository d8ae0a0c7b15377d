"""Watching directories, also over broken connections."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import proxy_to

from picod import ChangesLost, FailedPreconditionError, FileChange, FileChangeKind, NotFoundError, PicoDClient, RetryPolicy

PATIENT = RetryPolicy(attempts=30, initial_backoff_seconds=0.05, max_backoff_seconds=1)
CREATED, MODIFIED, MOVED, REMOVED = (
    FileChangeKind.CREATED,
    FileChangeKind.MODIFIED,
    FileChangeKind.MOVED,
    FileChangeKind.REMOVED,
)


def test_watch_reports_what_changes(client: PicoDClient, tmp_path: Path) -> None:
    with client.watch(str(tmp_path), recursive=True, kinds=[CREATED, MOVED, REMOVED]) as watch:
        (tmp_path / "a").mkdir()
        created = next(watch)
        assert isinstance(created, FileChange)
        assert (created.kind, created.path, created.is_directory) == (CREATED, f"{tmp_path}/a", True)
        (tmp_path / "a/b").touch()
        event = next(watch)
        assert isinstance(event, FileChange)
        assert (event.kind, event.path) == (CREATED, f"{tmp_path}/a/b")
        os.rename(tmp_path / "a/b", tmp_path / "c")
        moved = next(watch)
        assert isinstance(moved, FileChange)
        assert (moved.kind, moved.from_path, moved.path) == (MOVED, f"{tmp_path}/a/b", f"{tmp_path}/c")
    assert list(watch) == []


def test_a_watch_ends_with_its_directory(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    with client.watch(f"{tmp_path}/gone") as watch:
        os.rmdir(tmp_path / "gone")
        assert [event for event in watch if isinstance(event, ChangesLost)] == []
        assert watch.ended
    with pytest.raises(NotFoundError):
        client.watch(f"{tmp_path}/gone")
    (tmp_path / "file").touch()
    with pytest.raises(FailedPreconditionError):
        client.watch(f"{tmp_path}/file")


def test_a_watch_goes_on_after_a_cut_and_says_what_it_missed(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        with client.watch(str(tmp_path)) as watch:
            proxy.cut()
            assert next(watch) == ChangesLost("reconnected")
            (tmp_path / "new").touch()
            event = next(watch)
            assert isinstance(event, FileChange)
            assert event.path == f"{tmp_path}/new"


def test_changes_are_polled(client: PicoDClient, tmp_path: Path) -> None:
    begun = client.changes(str(tmp_path), include=["*.txt"])
    assert (begun.changes, begun.history_lost, begun.more) == ((), False, False)
    (tmp_path / "a.py").touch()
    (tmp_path / "a.txt").touch()
    answer = client.changes(str(tmp_path), begun.cursor, include=["*.txt"], wait=10)
    assert [change.path for change in answer.changes if change.kind is CREATED] == [f"{tmp_path}/a.txt"]
    again = client.changes(str(tmp_path), begun.cursor, include=["*.txt"], wait=10)
    assert again.changes[: len(answer.changes)] == answer.changes


def test_a_daemon_that_was_restarted_has_lost_the_history(connect: Connect, tmp_path: Path) -> None:
    with running_daemon() as first:
        client = connect("127.0.0.1", first.port, first.access_token, retry=PATIENT)
        cursor = client.changes(str(tmp_path)).cursor
        first.kill()
    with running_daemon(port=first.port, access_token=first.access_token):
        answer = client.changes(str(tmp_path), cursor)
        assert answer.history_lost
        assert answer.cursor
