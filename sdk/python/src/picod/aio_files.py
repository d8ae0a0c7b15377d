"""The methods of the asyncio client that describe and change files, directories and links."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from .aio_directory_watch import AsyncDirectoryWatch
from .aio_entry_iterators import AsyncDirectoryEntries, AsyncFoundEntries, AsyncSearchMatches
from .aio_streams import AsyncFollower
from .connection import Metadata
from .entries import CopyResult, PendingUpload, SignedUrl, copy_result, pending_upload, signed_url
from .errors import NotFoundError, rpc_errors
from .file_changes import Changes, FileChangeKind, changes_of, watch_options
from .file_requests import find_request, move_request, set_attributes_request, signed_url_request
from .requests import duration, stat_request
from .results import EntryInfo, FileType, entry_info
from .retry import RetryPolicy
from .v1 import filesystem_pb2, filesystem_pb2_grpc

_T = TypeVar("_T")


class AsyncFileMethods(abc.ABC):
    """As `FileMethods`."""

    _files: filesystem_pb2_grpc.FilesystemServiceStub
    _metadata: Metadata
    _request_timeout: float | None
    _transfer_timeout: float | None
    _retry: RetryPolicy
    _keepalive_interval: float

    @abc.abstractmethod
    async def _repeated(self, attempt: Callable[[], Awaitable[_T]]) -> _T: ...

    @abc.abstractmethod
    async def _unary(self, method: Any, request: object, timeout: float | None, metadata: Metadata = ()) -> Any: ...  # noqa: ANN401

    @abc.abstractmethod
    def _follow(
        self, request: Callable[[], object], deadline: float | None = None, *, method: str = "Attach"
    ) -> AsyncFollower[Any]: ...

    async def stat(self, path: str, *, user: str = "", follow_symlinks: bool = False, xattrs: bool = False) -> EntryInfo:
        """As `PicoDClient.stat`."""
        request = stat_request(path, user=user, follow_symlinks=follow_symlinks, xattrs=xattrs)
        return entry_info((await self._repeated(lambda: self._file_call("Stat", request))).entry)

    async def exists(self, path: str, *, user: str = "", follow_symlinks: bool = False) -> bool:
        """As `PicoDClient.exists`."""
        try:
            await self.stat(path, user=user, follow_symlinks=follow_symlinks)
        except NotFoundError:
            return False
        return True

    def list_directory(self, path: str, *, depth: int = 1, user: str = "") -> AsyncDirectoryEntries:
        """As `PicoDClient.list_directory`."""
        request = filesystem_pb2.ListDirectoryRequest(path=path, user=user, depth=depth)
        return AsyncDirectoryEntries(self, "ListDirectory", request)

    async def make_directory(
        self, path: str, mode: int | None = None, *, must_not_exist: bool = False, user: str = ""
    ) -> EntryInfo:
        """As `PicoDClient.make_directory`."""
        request = filesystem_pb2.MakeDirectoryRequest(path=path, user=user, mode=mode, must_not_exist=must_not_exist)
        if must_not_exist:
            return entry_info((await self._file_call("MakeDirectory", request)).entry)
        return entry_info((await self._repeated(lambda: self._file_call("MakeDirectory", request))).entry)

    async def move(
        self, source: str, destination: str, *, no_replace: bool = False, exchange: bool = False, user: str = ""
    ) -> EntryInfo:
        """As `PicoDClient.move`."""
        request = move_request(source, destination, no_replace=no_replace, exchange=exchange, user=user)
        return entry_info((await self._long_file_call("Move", request)).entry)

    async def copy(self, source: str, destination: str, *, must_not_exist: bool = False, user: str = "") -> CopyResult:
        """As `PicoDClient.copy`."""
        request = filesystem_pb2.CopyRequest(source=source, destination=destination, user=user, must_not_exist=must_not_exist)
        return copy_result(await self._long_file_call("Copy", request))

    async def remove(self, path: str, *, recursive: bool = False, missing_ok: bool = False, user: str = "") -> int:
        """As `PicoDClient.remove`."""
        request = filesystem_pb2.RemoveRequest(path=path, user=user, recursive=recursive, missing_ok=missing_ok)
        call = self._long_file_call if recursive else self._file_call
        response = await (self._repeated(lambda: call("Remove", request)) if missing_ok else call("Remove", request))
        return int(response.removed)

    async def set_attributes(
        self,
        path: str,
        *,
        mode: int | None = None,
        owner: str | int = "",
        group: str | int = "",
        modified_time: datetime | float | None = None,
        accessed_time: datetime | float | None = None,
        set_xattrs: Mapping[str, bytes] | None = None,
        remove_xattrs: Iterable[str] = (),
        follow_symlinks: bool = True,
        user: str = "",
    ) -> EntryInfo:
        """As `PicoDClient.set_attributes`."""
        request = set_attributes_request(
            path,
            mode=mode,
            owner=owner,
            group=group,
            modified_time=modified_time,
            accessed_time=accessed_time,
            set_xattrs=set_xattrs,
            remove_xattrs=remove_xattrs,
            follow_symlinks=follow_symlinks,
            user=user,
        )
        return entry_info((await self._repeated(lambda: self._file_call("SetAttributes", request))).entry)

    def find(
        self,
        path: str,
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        gitignore: bool = False,
        skip_hidden: bool = False,
        types: Iterable[FileType] = (),
        min_size: int | None = None,
        max_size: int | None = None,
        modified_since: datetime | float | None = None,
        modified_before: datetime | float | None = None,
        depth: int = 0,
        max_results: int = 0,
        user: str = "",
    ) -> AsyncFoundEntries:
        """As `PicoDClient.find`."""
        request = find_request(
            path,
            include=include,
            exclude=exclude,
            gitignore=gitignore,
            skip_hidden=skip_hidden,
            types=types,
            min_size=min_size,
            max_size=max_size,
            modified_since=modified_since,
            modified_before=modified_before,
            depth=depth,
            max_results=max_results,
            user=user,
        )
        return AsyncFoundEntries(self, "Find", request)

    def search(
        self,
        path: str,
        pattern: str,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        gitignore: bool = False,
        skip_hidden: bool = False,
        context_before: int = 0,
        context_after: int = 0,
        max_matches: int | None = None,
        max_matches_per_file: int = 0,
        max_line_bytes: int | None = None,
        count_only: bool = False,
        user: str = "",
    ) -> AsyncSearchMatches:
        """As `PicoDClient.search`."""
        request = filesystem_pb2.SearchRequest(
            path=path,
            user=user,
            pattern=pattern,
            regex=regex,
            ignore_case=ignore_case,
            include=include,
            exclude=exclude,
            gitignore=gitignore,
            skip_hidden=skip_hidden,
            context_before=context_before,
            context_after=context_after,
            max_matches=max_matches,
            max_matches_per_file=max_matches_per_file,
            max_line_bytes=max_line_bytes,
            count_only=count_only,
        )
        return AsyncSearchMatches(self, "Search", request)

    async def watch(
        self,
        path: str,
        *,
        recursive: bool = False,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        debounce: float | None = None,
        kinds: Iterable[FileChangeKind] = (),
        user: str = "",
    ) -> AsyncDirectoryWatch:
        """As `PicoDClient.watch`."""
        request = filesystem_pb2.WatchDirectoryRequest(
            path=path,
            user=user,
            options=watch_options(recursive=recursive, include=include, exclude=exclude, debounce=debounce, kinds=kinds),
            keepalive_interval=duration(self._keepalive_interval),
        )
        return await AsyncDirectoryWatch._open(self._follow(lambda: request, method="WatchDirectory"))

    async def changes(
        self,
        path: str,
        cursor: str = "",
        *,
        wait: float = 0,
        recursive: bool = False,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        debounce: float | None = None,
        kinds: Iterable[FileChangeKind] = (),
        user: str = "",
    ) -> Changes:
        """As `PicoDClient.changes`."""
        request = filesystem_pb2.GetChangesRequest(
            path=path,
            user=user,
            options=watch_options(recursive=recursive, include=include, exclude=exclude, debounce=debounce, kinds=kinds),
            cursor=cursor,
            wait=duration(wait),
        )
        timeout = None if self._request_timeout is None else self._request_timeout + wait
        return changes_of(await self._repeated(lambda: self._file_call("GetChanges", request, timeout)))

    async def create_signed_url(
        self, path: str, *, method: str = "GET", lifetime: float | None = None, single_use: bool = False, user: str = ""
    ) -> SignedUrl:
        """As `PicoDClient.create_signed_url`."""
        request = signed_url_request(path, method=method, lifetime=lifetime, single_use=single_use, user=user)
        return signed_url(await self._repeated(lambda: self._file_call("CreateSignedUrl", request)))

    async def list_uploads(self, *, user: str = "") -> list[PendingUpload]:
        """As `PicoDClient.list_uploads`."""
        request = filesystem_pb2.ListUploadsRequest(user=user)
        response = await self._repeated(lambda: self._file_call("ListUploads", request))
        return [pending_upload(upload) for upload in response.uploads]

    async def abort_upload(self, id: str, *, user: str = "") -> None:  # noqa: A002 (the field's name)
        """As `PicoDClient.abort_upload`."""
        await self._file_call("AbortUpload", filesystem_pb2.AbortUploadRequest(upload_id=id, user=user))

    async def _file_call(self, method: str, request: object, timeout: float | None = None) -> Any:  # noqa: ANN401 (untyped stubs)
        return await self._unary(getattr(self._files, method), request, timeout or self._request_timeout)

    async def _long_file_call(self, method: str, request: object) -> Any:  # noqa: ANN401 (untyped stubs)
        """Of what takes as long as there is to copy or to remove."""
        return await self._unary(getattr(self._files, method), request, self._transfer_timeout)

    def _file_stream(self, method: str, request: object) -> Any:  # noqa: ANN401 (untyped stubs)
        with rpc_errors():
            return getattr(self._files, method)(request, timeout=self._transfer_timeout, metadata=self._metadata)
