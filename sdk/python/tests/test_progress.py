from __future__ import annotations

import sys
from pathlib import Path

import pytest

from picod import NotFoundError, PicoDClient

SIZE = 3 * 1024 * 1024


def test_shows_a_bar(client: PicoDClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "local").write_bytes(bytes(SIZE))
    client.upload_file(tmp_path / "local", str(tmp_path / "remote"), progress=True)
    upload = capfd.readouterr().err
    assert upload.startswith("\rlocal: ")
    assert "100%" in upload
    assert "3.00M/3.00M" in upload
    client.download_file(str(tmp_path / "remote"), tmp_path / "copy", progress=True)
    download = capfd.readouterr().err
    assert download.startswith("\rremote: ")
    assert "3.00M/3.00M" in download


def test_is_silent_by_default(client: PicoDClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "local").write_bytes(bytes(SIZE))
    client.upload_file(tmp_path / "local", str(tmp_path / "remote"))
    client.download_file(str(tmp_path / "remote"), tmp_path / "copy")
    assert capfd.readouterr() == ("", "")


def test_the_bar_ends_with_a_failed_transfer(client: PicoDClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFoundError):
        client.download_file(str(tmp_path / "missing"), tmp_path / "copy", progress=True)
    assert capfd.readouterr().err.endswith("\n")


def test_says_what_to_install_before_anything_is_transferred(
    client: PicoDClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    (tmp_path / "local").touch()
    with pytest.raises(ImportError, match=r"picod\[progress\]"):
        client.upload_file(tmp_path / "local", str(tmp_path / "remote"), progress=True)
    with pytest.raises(ImportError, match=r"picod\[progress\]"):
        client.download_file(str(tmp_path / "local"), tmp_path / "copy", progress=True)
    assert [path.name for path in tmp_path.iterdir()] == ["local"]
