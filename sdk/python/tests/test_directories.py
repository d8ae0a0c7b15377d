"""Describing and changing files, directories and links, finding and searching."""

from __future__ import annotations

import os
import stat
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import proxy_to

from picod import (
    AlreadyExistsError,
    FailedPreconditionError,
    FileType,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PicoDClient,
    UnavailableError,
    path_from_bytes,
    path_to_bytes,
)

NOBODY = "65534"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, content in {"a.txt": "one\ntwo\n", "b/c.py": "two = 2\n", "b/d/e.txt": "", ".hidden/f": "two"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (tmp_path / "link").symlink_to("b")
    return tmp_path


def test_stat_tells_everything(client: PicoDClient, tree: Path) -> None:
    os.setxattr(tree / "a.txt", "user.note", b"\xff")
    os.link(tree / "a.txt", tree / "again")
    entry = client.stat(f"{tree}/a.txt", xattrs=True)
    assert (entry.uid, entry.gid, entry.hard_links, entry.raw_name) == (os.getuid(), os.getgid(), 2, None)
    assert entry.xattrs == {"user.note": b"\xff"}
    assert entry.accessed_time is not None
    assert client.stat(f"{tree}/a.txt").xattrs == {}


def test_exists(client: PicoDClient, tree: Path) -> None:
    assert client.exists(f"{tree}/a.txt")
    assert not client.exists(f"{tree}/missing")
    (tree / "dangling").symlink_to("missing")
    assert client.exists(f"{tree}/dangling")
    assert not client.exists(f"{tree}/dangling", follow_symlinks=True)


def test_list_directory(client: PicoDClient, tree: Path) -> None:
    assert [entry.name for entry in client.list_directory(str(tree))] == [".hidden", "a.txt", "b", "link"]
    paths = [os.path.relpath(entry.path, tree) for entry in client.list_directory(str(tree), depth=0)]
    assert paths == [".hidden", ".hidden/f", "a.txt", "b", "b/c.py", "b/d", "b/d/e.txt", "link"]
    assert next(iter(client.list_directory(f"{tree}/b/d", depth=3))).size == 0
    with pytest.raises(NotFoundError) as caught:
        next(iter(client.list_directory(f"{tree}/missing")))
    assert caught.value.metadata["path"] == f"{tree}/missing"
    with pytest.raises(FailedPreconditionError):
        list(client.list_directory(f"{tree}/a.txt"))


def test_an_iteration_can_be_given_up(client: PicoDClient, tree: Path) -> None:
    with client.list_directory(str(tree), depth=0) as entries:
        assert next(entries).name == ".hidden"
    assert list(entries) == []


def test_make_directory(client: PicoDClient, tmp_path: Path) -> None:
    entry = client.make_directory(f"{tmp_path}/x/y", 0o700)
    assert (entry.type, entry.mode) == (FileType.DIRECTORY, 0o700)
    assert client.make_directory(f"{tmp_path}/x/y").mode == 0o700
    with pytest.raises(AlreadyExistsError):
        client.make_directory(f"{tmp_path}/x/y", must_not_exist=True)


def test_move(client: PicoDClient, tree: Path) -> None:
    assert client.move(f"{tree}/a.txt", f"{tree}/new/a").path == f"{tree}/new/a"
    with pytest.raises(AlreadyExistsError):
        client.move(f"{tree}/b", f"{tree}/new", no_replace=True)
    client.move(f"{tree}/b", f"{tree}/new", exchange=True)
    assert sorted(os.listdir(tree / "new")) == ["c.py", "d"]
    with pytest.raises(ValueError, match="either"):
        client.move("a", "b", no_replace=True, exchange=True)


def test_copy(client: PicoDClient, tree: Path) -> None:
    copied = client.copy(f"{tree}/b", f"{tree}/copy")
    assert (copied.entry.path, copied.entries, copied.bytes) == (f"{tree}/copy", 4, 8)
    assert (tree / "copy/c.py").read_text() == "two = 2\n"
    with pytest.raises(AlreadyExistsError):
        client.copy(f"{tree}/b", f"{tree}/copy", must_not_exist=True)


def test_remove(client: PicoDClient, tree: Path) -> None:
    with pytest.raises(FailedPreconditionError):
        client.remove(f"{tree}/b")
    assert client.remove(f"{tree}/b", recursive=True) == 4
    assert client.remove(f"{tree}/b", missing_ok=True) == 0
    assert client.remove(f"{tree}/link") == 1
    with pytest.raises(NotFoundError):
        client.remove(f"{tree}/b")


def test_set_attributes(client: PicoDClient, tree: Path) -> None:
    path = f"{tree}/a.txt"
    time = datetime(2020, 1, 2, 3, 4, 5, 678901, timezone.utc)
    entry = client.set_attributes(
        path, mode=0o600, owner=65534, group=NOBODY, modified_time=time, accessed_time=1.5, set_xattrs={"user.a": b"1"}
    )
    assert (entry.mode, entry.uid, entry.gid, entry.modified_time) == (0o600, 65534, 65534, time)
    assert os.stat(path).st_atime == 1.5
    assert os.getxattr(path, "user.a") == b"1"
    client.set_attributes(path, remove_xattrs=["user.a", "user.b"])
    assert os.listxattr(path) == []
    client.set_attributes(f"{tree}/link", modified_time=7, follow_symlinks=False)
    assert os.lstat(tree / "link").st_mtime == 7
    with pytest.raises(InvalidArgumentError):
        client.set_attributes(path, owner="no-such-user")


def test_find(client: PicoDClient, tree: Path) -> None:
    found = client.find(str(tree), include=["*.txt", "*.py"], types=[FileType.FILE])
    assert [entry.name for entry in found] == ["a.txt", "c.py", "e.txt"]
    assert found.summary is not None
    assert (found.summary.matched, found.summary.unreadable_count) == (3, 0)
    assert [entry.name for entry in client.find(str(tree), min_size=8, max_size=8, max_results=1)] == ["a.txt"]
    (tree / ".gitignore").write_text("*.txt\n!e.txt\n")
    names = [entry.name for entry in client.find(str(tree), gitignore=True, skip_hidden=True, modified_since=0)]
    assert names == ["b", "c.py", "d", "e.txt", "link"]
    with pytest.raises(InvalidArgumentError):
        list(client.find(str(tree), include=["["]))


def test_search(client: PicoDClient, tree: Path) -> None:
    matches = client.search(str(tree), "TWO", ignore_case=True, context_before=1, skip_hidden=True)
    found = {os.path.relpath(match.path, tree): match for match in matches}
    assert sorted(found) == ["a.txt", "b/c.py"]
    match = found["a.txt"]
    assert (match.line_number, match.line, match.offset, match.matches, match.before) == (2, "two", 4, ((0, 3),), ("one",))
    assert matches.summary is not None
    assert (matches.summary.matched_lines, matches.summary.truncated) == (2, False)
    counted = client.search(str(tree), "t[wx]o", regex=True, count_only=True)
    assert list(counted) == []
    assert counted.summary is not None
    assert counted.summary.matched_files == 3
    with pytest.raises(InvalidArgumentError):
        list(client.search(str(tree), "(", regex=True))


@pytest.mark.parametrize(
    "raw", [b"caf\xe9", "\uef80 \U0001f40d".encode(), b"\xed\xa0\x80", b"\xf0\x9f\x90", "ü\uefff".encode() + b"\xff"]
)
def test_names_that_are_not_utf8(client: PicoDClient, tmp_path: Path, raw: bytes) -> None:
    name = path_from_bytes(raw)
    assert path_to_bytes(name) == raw
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + raw))).write_text("x")
    [entry] = client.list_directory(str(tmp_path))
    assert (entry.name, entry.raw_name) == (name, raw)
    assert client.read_file(entry.path) == b"x"
    client.move(entry.path, entry.path + "2")
    assert os.listdir(os.fsencode(tmp_path)) == [raw + b"2"]


def test_all_names_become_text_and_back() -> None:
    for raw in (bytes(range(1, 256)), "plain", "ünï \uef80\uf000\ue000"):
        data = raw if isinstance(raw, bytes) else raw.encode()
        assert path_to_bytes(path_from_bytes(data)) == data
    assert path_from_bytes("grün".encode()) == "grün"


@pytest.mark.skipif(os.getuid() != 0, reason="acts as another user")
def test_what_a_user_may_not_do(client: PicoDClient, tree: Path) -> None:
    for directory in (tree, *tree.parents):
        if directory.stat().st_uid == 0 and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    (tree / "b").chmod(0o700)
    for call in (
        lambda: client.make_directory(f"{tree}/x", user=NOBODY),
        lambda: client.remove(f"{tree}/a.txt", user=NOBODY),
        lambda: client.copy(f"{tree}/b/c.py", "/tmp/never", user=NOBODY),
        lambda: list(client.list_directory(f"{tree}/b", user=NOBODY)),
    ):
        with pytest.raises(PermissionDeniedError) as caught:
            call()
        assert caught.value.metadata["path"].startswith(str(tree))
    entries = client.list_directory(str(tree), depth=0, user=NOBODY)
    assert "a.txt" in [entry.name for entry in entries]
    assert [(entry.path, entry.reason) for entry in entries.unreadable] == [(f"{tree}/b", "EACCES")]


def test_signed_urls(client: PicoDClient, daemon: Daemon, tree: Path) -> None:
    signed = client.create_signed_url(f"{tree}/a.txt", lifetime=60, single_use=True)
    assert 0 < (signed.expires_at - datetime.now(timezone.utc)).total_seconds() <= 61
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}{signed.url}") as response:
        assert response.read() == b"one\ntwo\n"
    with pytest.raises(InvalidArgumentError):
        client.create_signed_url("x", method="POST")


def test_a_listing_goes_on_after_a_cut(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    for number in range(20_000):
        (tmp_path / f"file-{number:05}").touch()
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token)
        entries = client.list_directory(str(tmp_path))
        names = [next(entries).name]
        proxy.cut()
        names += [entry.name for entry in entries]
        assert names == [f"file-{number:05}" for number in range(20_000)]
        assert proxy.connections == 2


def test_a_client_that_never_repeats_says_so(daemon: Daemon, connect: Connect, tree: Path) -> None:
    with running_daemon() as other:
        client = connect("127.0.0.1", other.port, other.access_token, retry=None)
        other.kill()
        with pytest.raises(UnavailableError):
            list(client.find(str(tree)))
