"""The methods of the blocking client that describe and change files, directories and links."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from .connection import Metadata
from .directory_watch import DirectoryWatch
from .entries import CopyResult, PendingUpload, SignedUrl, copy_result, pending_upload, signed_url
from .entry_iterators import DirectoryEntries, FoundEntries, SearchMatches
from .errors import NotFoundError, rpc_errors
from .file_changes import Changes, FileChangeKind, changes_of, watch_options
from .file_requests import find_request, move_request, set_attributes_request, signed_url_request
from .requests import duration, stat_request
from .results import EntryInfo, FileType, entry_info
from .retry import RetryPolicy
from .streams import Follower
from .v1 import filesystem_pb2, filesystem_pb2_grpc

_T = TypeVar("_T")


class FileMethods(abc.ABC):
    """What `PicoDClient` can do with files, directories and links, except for moving their content.

    Paths are absolute, relative to the user's working directory, or start with `~`. Names that are not UTF-8 are written as
    `path_from_bytes` does. `user` is the name or numeric id of the user to act as. Default: the daemon's. The system decides what
    that user may do: `PermissionDeniedError` names the path in `metadata`.
    """

    _files: filesystem_pb2_grpc.FilesystemServiceStub
    _metadata: Metadata
    _request_timeout: float | None
    _transfer_timeout: float | None
    _retry: RetryPolicy
    _keepalive_interval: float

    @abc.abstractmethod
    def _repeated(self, attempt: Callable[[], _T]) -> _T: ...

    @abc.abstractmethod
    def _unary(self, method: Any, request: object, timeout: float | None, metadata: Metadata = ()) -> Any: ...  # noqa: ANN401

    @abc.abstractmethod
    def _follow(
        self, request: Callable[[], object], deadline: float | None = None, *, method: str = "Attach"
    ) -> Follower[Any]: ...

    def stat(self, path: str, *, user: str = "", follow_symlinks: bool = False, xattrs: bool = False) -> EntryInfo:
        """Describes one file, directory or other entry. Repeated as `retry` says.

        Args:
            path: Absolute, relative to the user's working directory, or starting with `~`.
            user: Name or numeric id of the user to act as. Default: the daemon's.
            follow_symlinks: Describe what a symbolic link points to instead of the link itself.
            xattrs: Fetch the extended attributes that begin with "user." too.

        Raises:
            NotFoundError: Nothing has that name, or the link to follow dangles.
        """
        request = stat_request(path, user=user, follow_symlinks=follow_symlinks, xattrs=xattrs)
        return entry_info(self._repeated(lambda: self._file_call("Stat", request)).entry)

    def exists(self, path: str, *, user: str = "", follow_symlinks: bool = False) -> bool:
        """Says whether something has that name. Repeated as `retry` says.

        Args:
            path: As for `stat`.
            user: As for `stat`.
            follow_symlinks: A link that dangles does not count.

        Raises:
            FailedPreconditionError: A component of the path before the last is not a directory.
            PermissionDeniedError: The user may not know.
        """
        try:
            self.stat(path, user=user, follow_symlinks=follow_symlinks)
        except NotFoundError:
            return False
        return True

    def list_directory(self, path: str, *, depth: int = 1, user: str = "") -> DirectoryEntries:
        """Returns an iterator of the entries of a directory, hidden ones included, in the order of the bytes of their names.

        Each directory is followed by what is in it, down to `depth`. Symbolic links are described, not followed. When the
        connection breaks it goes on, as `retry` says.

        Args:
            path: As for `stat`; a symbolic link to a directory is followed.
            depth: 1 for the directory's own entries; 0 has no limit.
            user: As for `stat`.

        Raises, while iterating:
            NotFoundError: Nothing has that name.
            FailedPreconditionError: It is not a directory.
        """
        request = filesystem_pb2.ListDirectoryRequest(path=path, user=user, depth=depth)
        return DirectoryEntries(self, "ListDirectory", request)

    def make_directory(self, path: str, mode: int | None = None, *, must_not_exist: bool = False, user: str = "") -> EntryInfo:
        """Makes a directory and its missing parents. Repeated as `retry` says, unless `must_not_exist`.

        Args:
            path: As for `stat`.
            mode: Permission bits of the directory itself when it is made, set exactly. Default: what the umask leaves of 0o777.
            must_not_exist: Refuse one that exists.
            user: As for `stat`; it owns what is made.

        Raises:
            AlreadyExistsError: Something else has the name; with `must_not_exist` also a directory.
        """
        request = filesystem_pb2.MakeDirectoryRequest(path=path, user=user, mode=mode, must_not_exist=must_not_exist)
        if must_not_exist:
            return entry_info(self._file_call("MakeDirectory", request).entry)
        return entry_info(self._repeated(lambda: self._file_call("MakeDirectory", request)).entry)

    def move(
        self, source: str, destination: str, *, no_replace: bool = False, exchange: bool = False, user: str = ""
    ) -> EntryInfo:
        """Renames a file, directory or link, to another file system too; missing parents are made. Never repeated.

        Args:
            source: As for `stat`.
            destination: The new name itself, not a directory to put it in. What has it is replaced; of directories only an
                empty one.
            no_replace: The name must be free.
            exchange: Both exist and trade places in one step.
            user: As for `stat`.

        Returns:
            The entry at its new place.

        Raises:
            NotFoundError: Nothing has the name `source`; with `exchange` or `destination`.
            AlreadyExistsError: With `no_replace` the name is taken.
            FailedPreconditionError: A directory would replace a file, a file a directory, or it is not empty.
            InvalidArgumentError: A directory would be moved into itself.
            UnimplementedError: `exchange` across file systems.
            ValueError: Both `no_replace` and `exchange`.
        """
        request = move_request(source, destination, no_replace=no_replace, exchange=exchange, user=user)
        return entry_info(self._long_file_call("Move", request).entry)

    def copy(self, source: str, destination: str, *, must_not_exist: bool = False, user: str = "") -> CopyResult:
        """Copies a file, link or whole directory within the sandbox, with modes, times and user xattrs. Never repeated.

        A destination that does not exist appears as a whole, or not at all. A directory that exists is merged into.

        Args:
            source: As for `stat`; a symbolic link itself is copied.
            destination: The new name itself, not a directory to put it in. Missing parents are made.
            must_not_exist: The name must be free.
            user: As for `stat`.

        Raises:
            NotFoundError: Nothing has the name `source`.
            AlreadyExistsError: With `must_not_exist` the name is taken.
            FailedPreconditionError: A directory would replace a file, or a file a directory.
            InvalidArgumentError: A directory would be copied into itself.
        """
        request = filesystem_pb2.CopyRequest(source=source, destination=destination, user=user, must_not_exist=must_not_exist)
        return copy_result(self._long_file_call("Copy", request))

    def remove(self, path: str, *, recursive: bool = False, missing_ok: bool = False, user: str = "") -> int:
        """Removes a file, link or directory; a link itself, never what it points to. Repeated as `retry` says with `missing_ok`.

        Args:
            path: As for `stat`.
            recursive: A directory with all that is in it. What cannot be removed does not keep the rest.
            missing_ok: That there is no such file is no error.
            user: As for `stat`.

        Returns:
            How many files, directories and links were removed.

        Raises:
            NotFoundError: Nothing has that name, unless `missing_ok`.
            FailedPreconditionError: A directory that is not empty, unless `recursive`; `/` and the daemon's root always.
        """
        request = filesystem_pb2.RemoveRequest(path=path, user=user, recursive=recursive, missing_ok=missing_ok)
        call = self._long_file_call if recursive else self._file_call
        response = self._repeated(lambda: call("Remove", request)) if missing_ok else call("Remove", request)
        return int(response.removed)

    def set_attributes(
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
        """Changes mode, owner, group, times and user xattrs; what is not given stays. Repeated as `retry` says.

        They are applied in the order owner, mode, xattrs, times; an error leaves those before it changed.

        Args:
            path: As for `stat`.
            mode: Permission bits.
            owner: Name or number; only root may change it.
            group: Name or number.
            modified_time: A datetime (a naive one is of the local time zone), or seconds since 1970.
            accessed_time: Likewise.
            set_xattrs: Names, which begin with "user.", and values.
            remove_xattrs: Names; one that is missing is no error.
            follow_symlinks: Change what a symbolic link points to instead of the link itself.
            user: As for `stat`.

        Raises:
            NotFoundError: Nothing has that name.
            InvalidArgumentError: An unknown owner or group, or an xattr outside "user.".
            UnimplementedError: The file system has no xattrs.
        """
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
        return entry_info(self._repeated(lambda: self._file_call("SetAttributes", request)).entry)

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
    ) -> FoundEntries:
        """Returns an iterator of the entries below a directory that match all of what is asked for, as `list_directory` does.

        At its end its `summary` counts them all, and what could not be read.

        Args:
            path: As for `list_directory`.
            include: Globs of the path below it: `*`, `?`, `[a-z]`, `{a,b}` and `**` for any number of directories. One without
                a slash matches the name anywhere. Default: everything.
            exclude: Globs of what is left out; a directory that matches is not entered.
            gitignore: Leave out what .gitignore files exclude, and `.git`.
            skip_hidden: Leave out names that begin with a dot, and what is in such directories.
            types: Only these. Default: all.
            min_size: Bytes, for files only.
            max_size: Bytes, included.
            modified_since: As for `set_attributes`; at or after.
            modified_before: Before.
            depth: 1 for the directory's own entries. Default and 0: no limit.
            max_results: Entries to return; the rest is only counted. Default and 0: no limit.
            user: As for `stat`.

        Raises, while iterating:
            NotFoundError: Nothing has that name.
            FailedPreconditionError: It is not a directory.
            InvalidArgumentError: A malformed glob.
        """
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
        return FoundEntries(self, "Find", request)

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
    ) -> SearchMatches:
        """Returns an iterator of the lines of text files that match. Repeated as `retry` says, before the first of them.

        At its end its `summary` has the exact totals, also of what was not sent.

        Args:
            path: A file, or a directory to search below.
            pattern: What to look for within a line.
            regex: It is a regular expression in RE2 syntax instead of a literal text.
            ignore_case: Upper and lower case are the same.
            include: As for `find`.
            exclude: As for `find`.
            gitignore: As for `find`.
            skip_hidden: As for `find`.
            context_before: Lines to return before each line that matches, at most 100.
            context_after: Likewise, after it.
            max_matches: Lines to return in all; the rest is only counted. Default: 1,000.
            max_matches_per_file: Likewise, of each file. Default and 0: no limit.
            max_line_bytes: Bytes of a line that are returned, around its first match. Default: 1,024; at most 64 KiB.
            count_only: Return no lines, only the summary.
            user: As for `stat`.

        Raises, while iterating:
            NotFoundError: Nothing has that name.
            InvalidArgumentError: A malformed expression or glob.
        """
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
        return SearchMatches(self, "Search", request)

    def watch(
        self,
        path: str,
        *,
        recursive: bool = False,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        debounce: float | None = None,
        kinds: Iterable[FileChangeKind] = (),
        user: str = "",
    ) -> DirectoryWatch:
        """Returns an iterator of everything that changes in a directory from now on, until it is closed.

        Nothing is lost silently: a `ChangesLost` says that changes are missing, an `Unwatched` that a directory is not watched.

        Args:
            path: As for `stat`; a symbolic link to a directory is followed.
            recursive: What is below too, also in directories that appear.
            include: Only changes of paths that match one of these globs, as for `find`. Default: all.
            exclude: No changes of paths that match one of these globs, and nothing of the directories that match.
            debounce: Report a path when nothing has happened to it for so many seconds, at most 10. Default: at once.
            kinds: Only these. Default: all.
            user: As for `stat`.

        Raises:
            NotFoundError: Nothing has that name.
            FailedPreconditionError: It is not a directory.
            ResourceExhaustedError: The kernel's limit of watches is reached; the message names the sysctl.
            InvalidArgumentError: A malformed glob.
        """
        request = filesystem_pb2.WatchDirectoryRequest(
            path=path,
            user=user,
            options=watch_options(recursive=recursive, include=include, exclude=exclude, debounce=debounce, kinds=kinds),
            keepalive_interval=duration(self._keepalive_interval),
        )
        return DirectoryWatch._open(self._follow(lambda: request, method="WatchDirectory"))

    def changes(
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
        """As `watch`, for those who poll: what has changed since a cursor. Repeated as `retry` says.

        Without a cursor it begins to watch. The daemon keeps the last 10,000 changes, and stops watching when nobody has asked
        for 10 minutes.

        Args:
            path: As for `watch`.
            cursor: From the answer before; the options must be the same then.
            wait: Seconds to wait for a change when there is none yet, at most 30.
            recursive: As for `watch`.
            include: As for `watch`.
            exclude: As for `watch`.
            debounce: As for `watch`.
            kinds: As for `watch`.
            user: As for `stat`.

        Raises: as `watch`; InvalidArgumentError for a malformed cursor.
        """
        request = filesystem_pb2.GetChangesRequest(
            path=path,
            user=user,
            options=watch_options(recursive=recursive, include=include, exclude=exclude, debounce=debounce, kinds=kinds),
            cursor=cursor,
            wait=duration(wait),
        )
        timeout = None if self._request_timeout is None else self._request_timeout + wait
        return changes_of(self._repeated(lambda: self._file_call("GetChanges", request, timeout)))

    def create_signed_url(
        self, path: str, *, method: str = "GET", lifetime: float | None = None, single_use: bool = False, user: str = ""
    ) -> SignedUrl:
        """Makes an address under which one file can be fetched or stored over plain HTTP without the token, for a while.

        Args:
            path: As for `stat`. The file need not exist.
            method: "GET" (and HEAD) or "PUT".
            lifetime: Seconds. Default: 5 minutes; at most 7 days. It ends with the daemon.
            single_use: It works for the first request only.
            user: As for `stat`.

        Raises:
            InvalidArgumentError: Another method, or a lifetime of 0 or over 7 days.
        """
        request = signed_url_request(path, method=method, lifetime=lifetime, single_use=single_use, user=user)
        return signed_url(self._repeated(lambda: self._file_call("CreateSignedUrl", request)))

    def list_uploads(self, *, user: str = "") -> list[PendingUpload]:
        """Describes the pending uploads of a user, oldest first. Repeated as `retry` says."""
        request = filesystem_pb2.ListUploadsRequest(user=user)
        return [pending_upload(upload) for upload in self._repeated(lambda: self._file_call("ListUploads", request)).uploads]

    def abort_upload(self, id: str, *, user: str = "") -> None:  # noqa: A002 (the field's name)
        """Drops a pending upload and frees its space. Never repeated.

        Raises:
            NotFoundError: No such upload is pending.
        """
        self._file_call("AbortUpload", filesystem_pb2.AbortUploadRequest(upload_id=id, user=user))

    def _file_call(self, method: str, request: object, timeout: float | None = None) -> Any:  # noqa: ANN401 (untyped stubs)
        return self._unary(getattr(self._files, method), request, timeout or self._request_timeout)

    def _long_file_call(self, method: str, request: object) -> Any:  # noqa: ANN401 (untyped stubs)
        """Of what takes as long as there is to copy or to remove."""
        with rpc_errors():
            # Not the blocking form of the call: that one could not be cancelled by an interrupt.
            call = getattr(self._files, method).future(request, timeout=self._transfer_timeout, metadata=self._metadata)
            try:
                return call.result()
            finally:
                call.cancel()

    def _file_stream(self, method: str, request: object) -> Any:  # noqa: ANN401 (untyped stubs)
        with rpc_errors():
            return getattr(self._files, method)(request, timeout=self._transfer_timeout, metadata=self._metadata)
