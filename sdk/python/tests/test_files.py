from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from picod import (
    DataLossError,
    FailedPreconditionError,
    FileType,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PicoDClient,
)
from picod.download import Content
from picod.v1.filesystem_pb2 import ReadFileResponse, ReadFileSummary

BINARY = bytes(range(256)) * 5000


def names_in(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_stat_describes_a_file(client: PicoDClient, tmp_path: Path) -> None:
    path = tmp_path / "datei ü.txt"
    path.write_bytes(b"12345")
    path.chmod(0o640)
    entry = client.stat(str(path))
    assert (entry.name, entry.path, entry.type) == ("datei ü.txt", str(path), FileType.FILE)
    assert (entry.size, entry.mode, entry.permissions) == (5, 0o640, "-rw-r-----")
    assert entry.owner == path.owner()
    assert entry.group == path.group()
    assert abs(entry.modified_time - datetime.now(timezone.utc)) < timedelta(minutes=5)
    assert entry.symlink_target is None
    assert entry.etag


def test_stat_describes_directories_and_links(client: PicoDClient, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    assert client.stat(str(tmp_path)).type is FileType.DIRECTORY
    assert client.stat(str(link)).type is FileType.SYMLINK
    assert client.stat(str(link)).symlink_target == "target"
    with pytest.raises(NotFoundError):
        client.stat(str(link), follow_symlinks=True)
    (tmp_path / "target").write_text("12")
    assert client.stat(str(link), follow_symlinks=True).size == 2


@pytest.mark.parametrize("content", ["", "Grüße \N{SNAKE}\r\n", b"", b"\x00\xff", BINARY])
def test_write_file_and_read_file_round_trip(client: PicoDClient, tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "missing" / "directory" / "file"
    data = content.encode() if isinstance(content, str) else content
    entry = client.write_file(content, str(path))
    assert (entry.path, entry.size, entry.mode) == (str(path), len(data), 0o644)
    assert path.read_bytes() == data
    assert client.read_file(str(path)) == data
    assert names_in(path.parent) == ["file"]


def test_write_file_sets_and_keeps_the_mode(client: PicoDClient, tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert client.write_file("1", str(path), 0o4751).mode == 0o4751
    assert client.write_file("2", str(path)).mode == 0o4751
    assert client.write_file("3", str(path), mode=0).mode == 0
    with pytest.raises(InvalidArgumentError):
        client.write_file("4", str(path), mode=0o10000)
    assert path.read_text() == "3"


def test_write_file_refuses_a_directory(client: PicoDClient, tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError):
        client.write_file("x", str(tmp_path))


def test_read_file_returns_a_range(client: PicoDClient, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert client.read_file(str(path), offset=3) == b"3456789"
    assert client.read_file(str(path), offset=3, length=4) == b"3456"
    assert client.read_file(str(path), length=0) == b""
    assert client.read_file(str(path), offset=10) == b""
    assert client.read_file(str(path), length=100, checksum=False) == b"0123456789"
    with pytest.raises(OutOfRangeError):
        client.read_file(str(path), offset=11)


def test_read_file_reads_files_without_a_size(client: PicoDClient) -> None:
    assert client.read_file("/proc/self/status").startswith(b"Name:")


def test_read_file_refuses_what_is_no_file(client: PicoDClient, tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError):
        client.read_file(str(tmp_path))
    with pytest.raises(NotFoundError) as caught:
        client.read_file(str(tmp_path / "missing"))
    assert caught.value.metadata["path"] == str(tmp_path / "missing")


@pytest.mark.parametrize("checksum", [True, False])
def test_upload_and_download_round_trip(client: PicoDClient, tmp_path: Path, checksum: bool) -> None:
    source, remote, copy = tmp_path / "source", tmp_path / "remote", tmp_path / "copy"
    source.write_bytes(BINARY)
    entry = client.upload_file(source, str(remote), 0o600, checksum=checksum)
    assert (entry.size, entry.mode) == (len(BINARY), 0o600)
    assert remote.read_bytes() == BINARY
    client.download_file(str(remote), copy, checksum=checksum)
    assert copy.read_bytes() == BINARY
    assert names_in(tmp_path) == ["copy", "remote", "source"]


def test_upload_and_download_an_empty_file(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    client.upload_file(str(tmp_path / "source"), str(tmp_path / "remote"))
    client.download_file(str(tmp_path / "remote"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == b""


def test_upload_of_a_missing_file_is_a_local_error(client: PicoDClient, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        client.upload_file(tmp_path / "missing", str(tmp_path / "remote"))
    with pytest.raises(IsADirectoryError):
        client.upload_file(tmp_path, str(tmp_path / "remote"))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="not a regular file"):
        client.upload_file(tmp_path / "fifo", str(tmp_path / "remote"))
    assert names_in(tmp_path) == ["fifo"]


def test_upload_reports_an_early_refusal(client: PicoDClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(64 * 1024 * 1024)
    with pytest.raises(FailedPreconditionError):
        client.upload_file(source, str(tmp_path), checksum=False)


@pytest.mark.parametrize("checksum", [True, False])
def test_upload_of_a_file_without_a_size(client: PicoDClient, tmp_path: Path, checksum: bool) -> None:
    remote = tmp_path / "remote"
    client.upload_file("/proc/version", str(remote), checksum=checksum)
    assert remote.read_bytes() == Path("/proc/version").read_bytes()


def test_an_unreadable_source_is_a_local_error_and_leaves_the_remote_file(
    client: PicoDClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreadable(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 0:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size) or b""

    source, remote = tmp_path / "source", tmp_path / "remote"
    source.write_bytes(BINARY)
    remote.write_text("old")
    monkeypatch.setattr("picod.upload.open", Unreadable, raising=False)
    with pytest.raises(OSError, match="Input/output error"):
        client.upload_file(source, str(remote), checksum=False)
    assert remote.read_text() == "old"


def test_download_gives_a_new_file_the_mode_of_the_umask(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / "remote").write_text("new")
    umask = os.umask(0o027)
    try:
        client.download_file(str(tmp_path / "remote"), tmp_path / "copy")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o640


def test_download_keeps_mode_and_symbolic_link_of_what_it_replaces(client: PicoDClient, tmp_path: Path) -> None:
    (tmp_path / "remote").write_text("new")
    existing, link = tmp_path / "existing", tmp_path / "link"
    existing.write_text("old")
    existing.chmod(0o400)
    link.symlink_to(existing)
    client.download_file(str(tmp_path / "remote"), link)
    assert link.is_symlink()
    assert existing.read_text() == "new"
    assert stat.S_IMODE(existing.stat().st_mode) == 0o400


def test_download_refuses_destinations_that_are_no_files(client: PicoDClient, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    remote.write_text("x")
    with pytest.raises(ValueError, match="not a regular file"):
        client.download_file(str(remote), tmp_path)
    with pytest.raises(ValueError, match="not a regular file"):
        client.download_file(str(remote), "/dev/null")
    with pytest.raises(FileNotFoundError):
        client.download_file(str(remote), tmp_path / "missing" / "copy")


def test_a_failed_download_leaves_the_destination_as_it_was(client: PicoDClient, tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.write_text("old")
    with pytest.raises(NotFoundError):
        client.download_file(str(tmp_path / "missing"), existing)
    with pytest.raises(NotFoundError):
        client.download_file(str(tmp_path / "missing"), tmp_path / "new")
    assert existing.read_text() == "old"
    assert names_in(tmp_path) == ["existing"]


def test_relative_paths_and_home(client: PicoDClient) -> None:
    assert client.stat("~").type is FileType.DIRECTORY
    with pytest.raises(InvalidArgumentError):
        client.stat("")


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (None, "without its summary after 3 bytes"),
        (ReadFileSummary(bytes=4), "3 of 4 bytes"),
        (ReadFileSummary(bytes=3), "wrong content"),
        (ReadFileSummary(bytes=3, sha256=hashlib.sha256(b"abd").hexdigest()), "wrong content"),
    ],
)
def test_content_that_is_not_what_was_sent_is_data_loss(summary: ReadFileSummary | None, message: str) -> None:
    content = Content(checksum=True)
    content.chunk_of(ReadFileResponse(chunk=b"abc"))
    if summary is not None:
        content.chunk_of(ReadFileResponse(summary=summary))
    with pytest.raises(DataLossError, match=message):
        content.verify()
