"""Whole directories up and down, and kept alike."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from conftest import Connect
from daemon import Daemon, running_daemon
from proxy import proxy_to
from test_transfers import PATIENT, cut_at, meanwhile

from picod import FailedPreconditionError, NotFoundError, PermissionDeniedError, PicoDClient, SyncResult
from picod.ignore import IgnoreRules
from picod.progress import Progress
from picod.unpack import Unpacking

MIB = 1024 * 1024


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for path, content in {"a.txt": b"one", "b/empty": b"", "b/c/binary": bytes(range(256)) * 300, "ünï": b"x"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    (root / "a.txt").chmod(0o750)
    (root / "link").symlink_to("/nowhere")
    os.link(root / "a.txt", root / "again")
    (root / "nothing").mkdir()
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_text("latin")
    os.utime(root / "a.txt", ns=(1, 1_600_000_000_123_456_789))
    return root


def tree(root: Path) -> dict[bytes, tuple[int, bytes, int]]:
    found = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        for name in names + files:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            content, time = b"", 0
            if os.path.islink(path):
                content = os.readlink(path)
            elif name in files:
                content = Path(os.fsdecode(path)).read_bytes()
                # tarfile keeps times as floats, which are exact to some 200 ns.
                time = status.st_mtime_ns // 1000
            found[os.path.relpath(path, os.fsencode(root))] = (status.st_mode, content, time)
    return found


@pytest.mark.parametrize("atomic", [False, True])
def test_a_directory_goes_up_and_down(client: PicoDClient, source: Path, tmp_path: Path, atomic: bool) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    stored = client.upload_dir(source, str(remote), atomic=atomic)
    assert (stored.entries, stored.entry.path) == (len(tree(source)), str(remote))
    assert tree(remote) == tree(source)
    assert os.stat(remote / "a.txt").st_mtime_ns == 1_600_000_000_123_456_789
    assert os.path.samefile(remote / "a.txt", remote / "again")
    fetched = client.download_dir(str(remote), copy)
    assert fetched.unreadable_count == 0
    assert {path: entry[:2] for path, entry in tree(copy).items()} == {path: entry[:2] for path, entry in tree(source).items()}
    assert os.path.samefile(copy / "a.txt", copy / "again")
    assert sorted(os.listdir(tmp_path)) == ["copy", "remote", "source"]


def test_directories_are_merged_into_unless_atomic(client: PicoDClient, source: Path, tmp_path: Path) -> None:
    remote, copy = tmp_path / "remote", tmp_path / "copy"
    for directory in (remote, copy):
        (directory / "b").mkdir(parents=True)
        (directory / "b/own").write_text("own")
        (directory / "a.txt").write_text("old")
    client.upload_dir(source, str(remote))
    assert (remote / "b/own").read_text() == "own"
    assert (remote / "a.txt").read_text() == "one"
    client.download_dir(str(source), copy, exclude=["ünï"])
    assert (copy / "b/own").read_text() == "own"
    assert (copy / "a.txt").read_text() == "one"
    assert not (copy / "ünï").exists()
    client.upload_dir(source, str(remote), atomic=True)
    assert not (remote / "b/own").exists()


def test_what_is_ignored_is_not_sent(client: PicoDClient, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    for path in (".git/config", "a.log", "keep.log", "build/x", "sub/build/x", "sub/a.tmp", "b"):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("x")
    (source / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (source / "sub/.gitignore").write_text("*.tmp\n")
    client.upload_dir(source, str(remote), ignore_files=[".gitignore"], exclude=["b"])
    found = sorted(os.fsdecode(path) for path in tree(remote))
    assert found == [".gitignore", "keep.log", "sub", "sub/.gitignore", "sub/build", "sub/build/x"]


def test_errors_of_directories(client: PicoDClient, source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        client.upload_dir(tmp_path / "missing", f"{tmp_path}/remote")
    with pytest.raises(NotFoundError):
        client.download_dir(f"{tmp_path}/missing", tmp_path / "copy")
    with pytest.raises(NotADirectoryError):
        client.download_dir(str(source), source / "a.txt")
    (tmp_path / "remote/a.txt/x").mkdir(parents=True)
    with pytest.raises(FailedPreconditionError):
        client.upload_dir(source, f"{tmp_path}/remote")
    assert sorted(os.listdir(tmp_path)) == ["remote", "source"]
    if os.getuid() == 0:
        with pytest.raises(PermissionDeniedError):
            client.upload_dir(source, f"{tmp_path}/other", user="65534")


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_directory_is_sent_again_after_a_cut(daemon: Daemon, connect: Connect, tmp_path: Path, direction: str) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for number in range(30):
        (source / f"{number}").write_bytes(bytes([number]) * MIB)
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        with meanwhile(cut_at(proxy, 15 * MIB)):
            if direction == "up":
                client.upload_dir(source, str(target))
            else:
                client.download_dir(str(source), target)
        assert proxy.connections == 2
    assert {path: entry[1] for path, entry in tree(target).items()} == {path: entry[1] for path, entry in tree(source).items()}
    assert sorted(os.listdir(tmp_path)) == ["source", "target"]


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    archive.seek(0)
    return archive


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_an_archive_cannot_leave_its_directory(tmp_path: Path, name: str) -> None:
    with Unpacking(tmp_path / "in", Progress(False, "")) as unpacking, pytest.raises(ValueError, match="outside"):
        unpacking.unpack(archive_of((tarfile.TarInfo(name), b"x")))
    with Unpacking(tmp_path / "in", Progress(False, "")) as unpacking, pytest.raises(ValueError, match="outside"):
        unpacking.unpack(archive_of((link("a", name, tarfile.LNKTYPE), b"")))
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_through_links(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    evil = archive_of(
        (link("out", str(tmp_path / "victim"), tarfile.SYMTYPE), b""),
        (tarfile.TarInfo("out/file"), b"x"),
    )
    with Unpacking(tmp_path / "in", Progress(False, "")) as unpacking:
        unpacking.unpack(evil)
        with pytest.raises(OSError, match="exists"):
            unpacking.finish()
    assert os.listdir(tmp_path / "victim") == []


def test_sync_sends_what_differs(client: PicoDClient, source: Path, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    count = len(tree(source))
    first = client.sync_dir(source, str(remote))
    assert (first.created, first.updated, first.unchanged, first.deleted) == (count, 0, 0, 0)
    assert client.sync_dir(source, str(remote)) == SyncResult(unchanged=count)
    assert tree(remote) == tree(source)
    (source / "ünï").write_text("changed")
    (source / "b/c/binary").unlink()
    (source / "b/new").write_text("1234")
    second = client.sync_dir(source, str(remote))
    assert (second.created, second.updated, second.deleted, second.sent_bytes) == (1, 1, 0, 11)
    assert (remote / "b/c/binary").exists()
    third = client.sync_dir(source, str(remote), delete=True)
    assert (third.created, third.updated, third.deleted) == (0, 0, 1)
    assert tree(remote) == tree(source)


def test_sync_compares_content_when_asked(client: PicoDClient, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    source.mkdir()
    (source / "file").write_text("same")
    client.sync_dir(source, str(remote))
    os.utime(source / "file", (1, 1))
    assert client.sync_dir(source, str(remote), checksum=True).unchanged == 1
    (remote / "file").write_text("SAME")
    os.utime(remote / "file", (1, 1))
    assert client.sync_dir(source, str(remote)).unchanged == 1
    assert client.sync_dir(source, str(remote), checksum=True).updated == 1
    assert (remote / "file").read_text() == "same"


def test_sync_leaves_what_is_ignored(client: PicoDClient, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    source.mkdir()
    (source / ".picodignore").write_text("cache/\n*.o\n")
    (source / "a.o").write_text("local")
    (remote / "gone/cache").mkdir(parents=True)
    (remote / "gone/file").touch()
    (remote / "extra/deep").mkdir(parents=True)
    (remote / "b.o").touch()
    result = client.sync_dir(source, str(remote), delete=True)
    assert (result.created, result.deleted) == (1, 2)
    assert sorted(os.fsdecode(path) for path in tree(remote)) == [".picodignore", "b.o", "gone", "gone/cache"]


def test_sync_replaces_what_is_of_another_kind(client: PicoDClient, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    (source / "was-file").mkdir(parents=True)
    (source / "was-directory").write_text("x")
    (source / "was-link").write_text("y")
    (remote / "was-directory/below").mkdir(parents=True)
    (remote / "was-file").touch()
    (remote / "was-link").symlink_to("was-file")
    client.sync_dir(source, str(remote), delete=True)
    assert tree(remote) == tree(source)


def test_sync_goes_on_after_a_cut_with_large_files(daemon: Daemon, connect: Connect, tmp_path: Path) -> None:
    source, remote = tmp_path / "source", tmp_path / "remote"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(40 * MIB))
    for number in range(10):
        (source / f"{number}").write_bytes(bytes([number]) * MIB)
    told: list[tuple[int, int | None]] = []
    with proxy_to(daemon.port) as proxy:
        client = connect("127.0.0.1", proxy.port, daemon.access_token, retry=PATIENT)
        with meanwhile(cut_at(proxy, 5 * MIB, 30 * MIB)):
            result = client.sync_dir(source, str(remote), lambda *counts: told.append(counts))
        assert (result.created, result.sent_bytes) == (11, 50 * MIB)
        assert proxy.connections == 3
        assert proxy.forwarded_bytes < 70 * MIB
    assert tree(remote) == tree(source)
    assert told[-1][0] == told[-1][1]
    with running_daemon() as other:
        again = connect("127.0.0.1", other.port, other.access_token)
        assert again.sync_dir(source, str(remote)).unchanged == 11


PATTERNS = [
    "*.log",
    "!keep.log",
    "/top",
    "dir/",
    "a/**/z",
    "x?y",
    "[a-c]1",
    "deep/*.c",
    "**/any",
    "end/**",
    "\\!bang",
    "# comment",
    "sp\\ ",
]
PATHS = [
    "a.log",
    "keep.log",
    "s/b.log",
    "s/keep.log",
    "top",
    "s/top",
    "a/z",
    "a/b/z",
    "a/b/c/z",
    "s/a/z",
    "xzy",
    "x/y",
    "b1",
    "d1",
    "s/c1",
    "deep/x.c",
    "deep/s/x.c",
    "s/deep/x.c",
    "any",
    "s/t/any",
    "end/q",
    "end/q/r",
    "!bang",
    "bang",
    "s/dir2",
]


def test_patterns_are_those_of_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("\n".join(PATTERNS))
    rules = IgnoreRules(PATTERNS)
    checked = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin"],
        input="\n".join(PATHS),
        capture_output=True,
        text=True,
        check=False,
    )
    parents = {path: ["/".join(path.split("/")[:count]) for count in range(1, path.count("/") + 1)] for path in PATHS}
    ours = [path for path in PATHS if rules.ignores(path, False) or any(rules.ignores(parent, True) for parent in parents[path])]
    assert ours == checked.stdout.split()
