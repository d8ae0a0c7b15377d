"""Makes a directory of the sandbox like a local one, and sends only what differs."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from .directory_transfer import send_archive
from .errors import NotFoundError, PicoDError
from .file_upload import UploadOptions, upload_file
from .ignore import IgnoreRules
from .local_tree import LocalEntry, walk
from .names import path_from_bytes
from .progress import Progress, ProgressOption
from .transfer import Attempts, Transfer
from .upload import CHUNK_BYTES
from .v1 import filesystem_pb2
from .v1.filesystem_pb2 import FILE_TYPE_DIRECTORY, FILE_TYPE_FILE, FILE_TYPE_SYMLINK

# Larger files go by themselves: an archive that breaks off begins anew.
_LARGE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class SyncOptions:
    """How to make them alike; the fields are the arguments of `PicoDClient.sync_dir`."""

    remote_path: str
    user: str = ""
    delete: bool = False
    checksum: bool = False
    exclude: tuple[str, ...] = ()
    ignore_files: tuple[str, ...] = (".gitignore", ".picodignore")


@dataclass(frozen=True)
class SyncResult:
    """What `sync_dir` did: files, directories and links."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    sent_bytes: int = 0
    """Of the files that were sent."""


@dataclass(frozen=True)
class _Difference:
    created: list[LocalEntry]
    updated: list[LocalEntry]
    in_the_way: list[str]
    extra: list[str]
    unchanged: int

    @property
    def to_send(self) -> list[LocalEntry]:
        return sorted(self.created + self.updated, key=lambda entry: os.fsencode(entry.relative).split(b"/"))


def sync_directory(
    transfer: Transfer, local_path: str | os.PathLike[str], options: SyncOptions, progress: ProgressOption
) -> SyncResult:
    """Compares anew when the connection breaks, and goes on with what differs still."""
    sync = _Sync(transfer, os.fspath(local_path), options)
    attempts = Attempts(transfer)
    with Progress(progress, os.path.basename(os.fspath(local_path))) as bar:
        while True:
            try:
                return sync.run(bar)
            except PicoDError as error:
                attempts.wait_after(error)


class _Sync:
    def __init__(self, transfer: Transfer, local_path: str, options: SyncOptions) -> None:
        self._transfer = transfer
        self._local_path = local_path
        self._options = options
        self._first: _Difference | None = None

    def run(self, progress: Progress) -> SyncResult:
        difference = self._compare()
        first = self._first = self._first or difference
        for path in difference.in_the_way + (difference.extra if self._options.delete else []):
            self._remove(path)
        to_send = difference.to_send
        progress.restart(sum(_size(entry) for entry in to_send))
        large = [entry for entry in to_send if _size(entry) > _LARGE_BYTES]
        metadata = filesystem_pb2.WriteArchiveMetadata(path=self._options.remote_path, user=self._options.user)
        # Also when nothing is to be sent: the directory is to exist.
        send_archive(self._transfer, (entry for entry in to_send if _size(entry) <= _LARGE_BYTES), metadata, progress)
        for entry in large:
            self._send_large(entry, progress)
        return SyncResult(
            created=len(first.created),
            updated=len(first.updated),
            deleted=len(first.extra) if self._options.delete else 0,
            unchanged=first.unchanged,
            sent_bytes=sum(_size(entry) for entry in first.to_send),
        )

    def _compare(self) -> _Difference:
        rules = IgnoreRules(self._options.exclude)
        local = {_wire(entry.relative): entry for entry in walk(self._local_path, rules, self._options.ignore_files)}
        remote = self._list()
        created, updated, in_the_way = [], [], []
        for path, entry in local.items():
            there = remote.get(path)
            if there is None:
                created.append(entry)
            elif _type(entry) != there.type:
                updated.append(entry)
                if self._options.delete or there.type != FILE_TYPE_DIRECTORY:
                    in_the_way.append(path)
            elif self._differs(entry, there):
                updated.append(entry)
        extra = _removable([path for path in remote if path not in local], remote, rules)
        unchanged = len(local) - len(created) - len(updated)
        return _Difference(created, updated, in_the_way, extra, unchanged)

    def _list(self) -> dict[str, filesystem_pb2.EntryInfo]:
        request = filesystem_pb2.ListDirectoryRequest(path=self._options.remote_path, user=self._options.user, depth=0)
        found: dict[str, filesystem_pb2.EntryInfo] = {}
        prefix = -1
        try:
            with self._transfer.calling("ListDirectory", request) as responses:
                for response in responses:
                    for entry in response.entries:
                        prefix = prefix if prefix >= 0 else len(entry.path) - len(entry.name)
                        found[entry.path[prefix:]] = entry
        except NotFoundError:
            return {}
        return found

    def _differs(self, entry: LocalEntry, there: filesystem_pb2.EntryInfo) -> bool:
        if there.type == FILE_TYPE_SYMLINK:
            return _wire(os.readlink(entry.path)) != there.symlink_target
        if stat.S_IMODE(entry.status.st_mode) != there.mode:
            return True
        if there.type != FILE_TYPE_FILE:
            return False
        if entry.status.st_size != there.size:
            return True
        if self._options.checksum:
            return _local_sha256(entry.path) != self._remote_sha256(there.path)
        # In microseconds, which all file systems of interest keep.
        return entry.status.st_mtime_ns // 1000 != there.modified_time.ToNanoseconds() // 1000

    def _remote_sha256(self, path: str) -> str:
        request = filesystem_pb2.ReadFileRequest(path=path, user=self._options.user, checksum=True)
        with self._transfer.calling("ReadFile", request) as responses:
            for response in responses:
                if response.WhichOneof("response") == "summary":
                    return str(response.summary.sha256)
        return ""

    def _remove(self, path: str) -> None:
        remote_path = f"{self._options.remote_path.rstrip('/')}/{path}"
        request = filesystem_pb2.RemoveRequest(path=remote_path, user=self._options.user, recursive=True, missing_ok=True)
        self._transfer.unary("Remove", request)

    def _send_large(self, entry: LocalEntry, progress: Progress) -> None:
        remote_path = f"{self._options.remote_path.rstrip('/')}/{_wire(entry.relative)}"
        mode = stat.S_IMODE(entry.status.st_mode)
        upload_file(self._transfer, entry.path, UploadOptions(remote_path, mode, user=self._options.user), False)
        request = filesystem_pb2.SetAttributesRequest(path=remote_path, user=self._options.user)
        request.modified_time.FromNanoseconds(entry.status.st_mtime_ns)
        self._transfer.unary("SetAttributes", request)
        progress.advance(entry.status.st_size)


def _removable(extra: Iterable[str], remote: dict[str, filesystem_pb2.EntryInfo], rules: IgnoreRules) -> list[str]:
    """Leaves out what is ignored, directories in which something is, and what is in directories that go as a whole."""
    extra = list(extra)
    ignored: set[str] = set()
    keeping: set[str] = set()
    for path in extra:
        parents = [path[:at] for at, character in enumerate(path) if character == "/"]
        if rules.ignores(path, remote[path].type == FILE_TYPE_DIRECTORY) or not ignored.isdisjoint(parents):
            ignored.add(path)
            keeping.update(parents)
    going: set[str] = set()
    for path in extra:
        parents = [path[:at] for at, character in enumerate(path) if character == "/"]
        if path not in ignored and path not in keeping and going.isdisjoint(parents):
            going.add(path)
    return sorted(going)


def _wire(path: str) -> str:
    return path_from_bytes(os.fsencode(path))


def _size(entry: LocalEntry) -> int:
    return entry.status.st_size if stat.S_ISREG(entry.status.st_mode) else 0


def _type(entry: LocalEntry) -> int:
    mode = entry.status.st_mode
    if stat.S_ISDIR(mode):
        return FILE_TYPE_DIRECTORY
    return FILE_TYPE_SYMLINK if stat.S_ISLNK(mode) else FILE_TYPE_FILE if stat.S_ISREG(mode) else 0


def _local_sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
