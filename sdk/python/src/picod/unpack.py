"""Unpacks an archive of the sandbox, which is not trusted, into a local directory."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tarfile
from types import TracebackType
from typing import IO

from .progress import Progress

_CHUNK_BYTES = 512 * 1024
_ZEROS = bytes(_CHUNK_BYTES)


class Unpacking:
    """Unpacks into a new directory beside the destination, which takes its place, or whose files do, when all has arrived.

    Nothing can leave it: names are checked, and symbolic links are made last, so that nothing is written through them. They are
    made as they are, also those that point elsewhere. Set-id bits and owners are not taken over, devices and FIFOs are left out.
    Leaving the context without `finish` removes it.
    """

    def __init__(self, local_path: str | os.PathLike[str], progress: Progress) -> None:
        self._destination = os.path.realpath(local_path)
        if os.path.lexists(self._destination) and not os.path.isdir(self._destination):
            raise NotADirectoryError(f"cannot download a directory onto what is none: {self._destination}")
        self._progress = progress
        self._root = os.path.join(os.path.dirname(self._destination), f".picod-{secrets.token_hex(8)}.part")
        os.mkdir(self._root)
        self._mode = stat.S_IMODE(os.stat(self._root).st_mode)
        os.chmod(self._root, 0o700)
        self._directories: dict[str, tuple[int, float]] = {}
        self._links: dict[str, str] = {}
        self.entries = 0
        """Unpacked so far."""

    def unpack(self, archive: IO[bytes]) -> None:
        """Unpacks a whole archive.

        Raises:
            ValueError: It names something outside.
            OSError: Something cannot be written.
        """
        with tarfile.open(fileobj=archive, mode="r|", bufsize=_CHUNK_BYTES, encoding="utf-8", errors="surrogateescape") as tar:
            while (member := tar.next()) is not None:
                self._add(tar, member)
                # They would pile up.
                tar.members.clear()  # type: ignore[attr-defined] # a list

    def finish(self) -> None:
        """Makes it visible."""
        for path, target in self._links.items():
            os.symlink(target, path)
        for path, (mode, modified) in reversed(self._directories.items()):
            os.utime(path, (modified, modified))
            os.chmod(path, mode)
        if not os.path.lexists(self._destination):
            if self._root not in self._directories:
                os.chmod(self._root, self._mode)
            os.rename(self._root, self._destination)
        else:
            os.chmod(self._root, 0o700)
            _merge(self._root, self._destination)

    def _add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._path_of(member.name)
        if member.isdir():
            os.makedirs(path, 0o700, exist_ok=True)
            self._directories[path] = (member.mode & 0o777, member.mtime)
        else:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            self._links.pop(path, None)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            if member.issym():
                self._links[path] = member.linkname
            elif member.islnk():
                self._link(path, self._path_of(member.linkname))
            elif member.isreg():
                self._write(tar, member, path)
            else:
                return
        self.entries += 1

    def _link(self, path: str, target: str) -> None:
        if target in self._links:
            self._links[path] = self._links[target]
        else:
            os.link(target, path)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        content = tar.extractfile(member)
        assert content is not None  # noqa: S101 (it is a file)
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            while chunk := content.read(_CHUNK_BYTES):
                # Holes stay holes.
                if member.issparse() and chunk == _ZEROS[: len(chunk)]:
                    file.seek(len(chunk), os.SEEK_CUR)
                else:
                    file.write(chunk)
                self._progress.advance(len(chunk))
            file.truncate()
        os.chmod(path, member.mode & 0o777)
        os.utime(path, (member.mtime, member.mtime))

    def _path_of(self, name: str) -> str:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or (os.name == "nt" and any(set(part) & set("\\:") for part in parts)):
            raise ValueError(f"the archive names something outside: {name!r}")
        return os.path.join(self._root, *parts)

    def __enter__(self) -> Unpacking:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        shutil.rmtree(self._root, ignore_errors=True)


def _merge(source: str, destination: str) -> None:
    """Moves what is in a directory into one that exists; files are replaced, each as a whole."""
    for entry in list(os.scandir(source)):
        target = os.path.join(destination, entry.name)
        if entry.is_dir(follow_symlinks=False) and os.path.lexists(target):
            if os.path.islink(target) or not os.path.isdir(target):
                raise NotADirectoryError(f"cannot put a directory in place of what is none: {target}")
            status = entry.stat(follow_symlinks=False)
            os.chmod(entry.path, 0o700)
            _merge(entry.path, target)
            os.chmod(target, status.st_mode & 0o777)
        else:
            os.replace(entry.path, target)
