from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_SYNC: _ClassVar[Durability]

class MoveMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MOVE_MODE_UNSPECIFIED: _ClassVar[MoveMode]
    MOVE_MODE_NO_REPLACE: _ClassVar[MoveMode]
    MOVE_MODE_EXCHANGE: _ClassVar[MoveMode]

class FileChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_CHANGE_KIND_UNSPECIFIED: _ClassVar[FileChangeKind]
    FILE_CHANGE_KIND_CREATED: _ClassVar[FileChangeKind]
    FILE_CHANGE_KIND_MODIFIED: _ClassVar[FileChangeKind]
    FILE_CHANGE_KIND_ATTRIBUTES: _ClassVar[FileChangeKind]
    FILE_CHANGE_KIND_REMOVED: _ClassVar[FileChangeKind]
    FILE_CHANGE_KIND_MOVED: _ClassVar[FileChangeKind]

class FileType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_TYPE_UNSPECIFIED: _ClassVar[FileType]
    FILE_TYPE_FILE: _ClassVar[FileType]
    FILE_TYPE_DIRECTORY: _ClassVar[FileType]
    FILE_TYPE_SYMLINK: _ClassVar[FileType]
    FILE_TYPE_FIFO: _ClassVar[FileType]
    FILE_TYPE_SOCKET: _ClassVar[FileType]
    FILE_TYPE_CHARACTER_DEVICE: _ClassVar[FileType]
    FILE_TYPE_BLOCK_DEVICE: _ClassVar[FileType]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_SYNC: Durability
MOVE_MODE_UNSPECIFIED: MoveMode
MOVE_MODE_NO_REPLACE: MoveMode
MOVE_MODE_EXCHANGE: MoveMode
FILE_CHANGE_KIND_UNSPECIFIED: FileChangeKind
FILE_CHANGE_KIND_CREATED: FileChangeKind
FILE_CHANGE_KIND_MODIFIED: FileChangeKind
FILE_CHANGE_KIND_ATTRIBUTES: FileChangeKind
FILE_CHANGE_KIND_REMOVED: FileChangeKind
FILE_CHANGE_KIND_MOVED: FileChangeKind
FILE_TYPE_UNSPECIFIED: FileType
FILE_TYPE_FILE: FileType
FILE_TYPE_DIRECTORY: FileType
FILE_TYPE_SYMLINK: FileType
FILE_TYPE_FIFO: FileType
FILE_TYPE_SOCKET: FileType
FILE_TYPE_CHARACTER_DEVICE: FileType
FILE_TYPE_BLOCK_DEVICE: FileType

class StatRequest(_message.Message):
    __slots__ = ("path", "user", "follow_symlinks", "xattrs")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_SYMLINKS_FIELD_NUMBER: _ClassVar[int]
    XATTRS_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    follow_symlinks: bool
    xattrs: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., follow_symlinks: bool = ..., xattrs: bool = ...) -> None: ...

class StatResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class ReadFileRequest(_message.Message):
    __slots__ = ("path", "offset", "length", "checksum", "user", "if_etag")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    IF_ETAG_FIELD_NUMBER: _ClassVar[int]
    path: str
    offset: int
    length: int
    checksum: bool
    user: str
    if_etag: str
    def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., checksum: bool = ..., user: _Optional[str] = ..., if_etag: _Optional[str] = ...) -> None: ...

class ReadFileResponse(_message.Message):
    __slots__ = ("metadata", "chunk", "summary")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    metadata: ReadFileMetadata
    chunk: bytes
    summary: ReadFileSummary
    def __init__(self, metadata: _Optional[_Union[ReadFileMetadata, _Mapping]] = ..., chunk: _Optional[bytes] = ..., summary: _Optional[_Union[ReadFileSummary, _Mapping]] = ...) -> None: ...

class ReadFileMetadata(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class ReadFileSummary(_message.Message):
    __slots__ = ("bytes", "sha256", "etag")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    sha256: str
    etag: str
    def __init__(self, bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class WriteFileRequest(_message.Message):
    __slots__ = ("metadata", "chunk")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    metadata: WriteFileMetadata
    chunk: bytes
    def __init__(self, metadata: _Optional[_Union[WriteFileMetadata, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class WriteFileMetadata(_message.Message):
    __slots__ = ("path", "mode", "user", "offset", "sha256", "size", "durability", "precondition", "upload_id")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    path: str
    mode: int
    user: str
    offset: int
    sha256: str
    size: int
    durability: Durability
    precondition: Precondition
    upload_id: str
    def __init__(self, path: _Optional[str] = ..., mode: _Optional[int] = ..., user: _Optional[str] = ..., offset: _Optional[int] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ..., upload_id: _Optional[str] = ...) -> None: ...

class Precondition(_message.Message):
    __slots__ = ("must_not_exist", "etag")
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    must_not_exist: bool
    etag: str
    def __init__(self, must_not_exist: bool = ..., etag: _Optional[str] = ...) -> None: ...

class WriteFileResponse(_message.Message):
    __slots__ = ("entry", "bytes_written", "sha256", "upload")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    BYTES_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    bytes_written: int
    sha256: str
    upload: PendingUpload
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., bytes_written: _Optional[int] = ..., sha256: _Optional[str] = ..., upload: _Optional[_Union[PendingUpload, _Mapping]] = ...) -> None: ...

class PendingUpload(_message.Message):
    __slots__ = ("upload_id", "path", "received", "created_time", "expire_time")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    CREATED_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    upload_id: str
    path: str
    received: _containers.RepeatedCompositeFieldContainer[ByteRange]
    created_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, upload_id: _Optional[str] = ..., path: _Optional[str] = ..., received: _Optional[_Iterable[_Union[ByteRange, _Mapping]]] = ..., created_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ByteRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class CommitUploadRequest(_message.Message):
    __slots__ = ("upload_id", "size", "sha256", "durability", "precondition", "user")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    upload_id: str
    size: int
    sha256: str
    durability: Durability
    precondition: Precondition
    user: str
    def __init__(self, upload_id: _Optional[str] = ..., size: _Optional[int] = ..., sha256: _Optional[str] = ..., durability: _Optional[_Union[Durability, str]] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ..., user: _Optional[str] = ...) -> None: ...

class CommitUploadResponse(_message.Message):
    __slots__ = ("entry", "sha256")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    sha256: str
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., sha256: _Optional[str] = ...) -> None: ...

class GetUploadRequest(_message.Message):
    __slots__ = ("upload_id", "user")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    upload_id: str
    user: str
    def __init__(self, upload_id: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class GetUploadResponse(_message.Message):
    __slots__ = ("upload",)
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    upload: PendingUpload
    def __init__(self, upload: _Optional[_Union[PendingUpload, _Mapping]] = ...) -> None: ...

class ListUploadsRequest(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: str
    def __init__(self, user: _Optional[str] = ...) -> None: ...

class ListUploadsResponse(_message.Message):
    __slots__ = ("uploads",)
    UPLOADS_FIELD_NUMBER: _ClassVar[int]
    uploads: _containers.RepeatedCompositeFieldContainer[PendingUpload]
    def __init__(self, uploads: _Optional[_Iterable[_Union[PendingUpload, _Mapping]]] = ...) -> None: ...

class AbortUploadRequest(_message.Message):
    __slots__ = ("upload_id", "user")
    UPLOAD_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    upload_id: str
    user: str
    def __init__(self, upload_id: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class AbortUploadResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateSignedUrlRequest(_message.Message):
    __slots__ = ("path", "user", "method", "lifetime", "single_use")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    SINGLE_USE_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    method: str
    lifetime: _duration_pb2.Duration
    single_use: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., method: _Optional[str] = ..., lifetime: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., single_use: bool = ...) -> None: ...

class CreateSignedUrlResponse(_message.Message):
    __slots__ = ("url", "expire_time")
    URL_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    url: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, url: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDirectoryRequest(_message.Message):
    __slots__ = ("path", "user", "depth")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    depth: int
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., depth: _Optional[int] = ...) -> None: ...

class ListDirectoryResponse(_message.Message):
    __slots__ = ("entries", "unreadable")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[EntryInfo]
    unreadable: _containers.RepeatedCompositeFieldContainer[UnreadableEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[EntryInfo, _Mapping]]] = ..., unreadable: _Optional[_Iterable[_Union[UnreadableEntry, _Mapping]]] = ...) -> None: ...

class UnreadableEntry(_message.Message):
    __slots__ = ("path", "reason", "message")
    PATH_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    path: str
    reason: str
    message: str
    def __init__(self, path: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class MakeDirectoryRequest(_message.Message):
    __slots__ = ("path", "user", "mode", "must_not_exist")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    mode: int
    must_not_exist: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., mode: _Optional[int] = ..., must_not_exist: bool = ...) -> None: ...

class MakeDirectoryResponse(_message.Message):
    __slots__ = ("entry", "created")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    created: bool
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., created: bool = ...) -> None: ...

class MoveRequest(_message.Message):
    __slots__ = ("source", "destination", "user", "mode")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    user: str
    mode: MoveMode
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., user: _Optional[str] = ..., mode: _Optional[_Union[MoveMode, str]] = ...) -> None: ...

class MoveResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class CopyRequest(_message.Message):
    __slots__ = ("source", "destination", "user", "must_not_exist")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    source: str
    destination: str
    user: str
    must_not_exist: bool
    def __init__(self, source: _Optional[str] = ..., destination: _Optional[str] = ..., user: _Optional[str] = ..., must_not_exist: bool = ...) -> None: ...

class CopyResponse(_message.Message):
    __slots__ = ("entry", "entries", "bytes")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    entries: int
    bytes: int
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class RemoveRequest(_message.Message):
    __slots__ = ("path", "user", "recursive", "missing_ok")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    recursive: bool
    missing_ok: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., recursive: bool = ..., missing_ok: bool = ...) -> None: ...

class RemoveResponse(_message.Message):
    __slots__ = ("removed",)
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    removed: int
    def __init__(self, removed: _Optional[int] = ...) -> None: ...

class SetAttributesRequest(_message.Message):
    __slots__ = ("path", "user", "no_follow_symlinks", "mode", "owner", "group", "modified_time", "accessed_time", "set_xattrs", "remove_xattrs")
    class SetXattrsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NO_FOLLOW_SYMLINKS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_TIME_FIELD_NUMBER: _ClassVar[int]
    ACCESSED_TIME_FIELD_NUMBER: _ClassVar[int]
    SET_XATTRS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_XATTRS_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    no_follow_symlinks: bool
    mode: int
    owner: str
    group: str
    modified_time: _timestamp_pb2.Timestamp
    accessed_time: _timestamp_pb2.Timestamp
    set_xattrs: _containers.ScalarMap[str, bytes]
    remove_xattrs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., no_follow_symlinks: bool = ..., mode: _Optional[int] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., modified_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., accessed_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., set_xattrs: _Optional[_Mapping[str, bytes]] = ..., remove_xattrs: _Optional[_Iterable[str]] = ...) -> None: ...

class SetAttributesResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class WatchDirectoryRequest(_message.Message):
    __slots__ = ("path", "user", "options", "keepalive_interval")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    options: WatchOptions
    keepalive_interval: _duration_pb2.Duration
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., options: _Optional[_Union[WatchOptions, _Mapping]] = ..., keepalive_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchOptions(_message.Message):
    __slots__ = ("recursive", "include", "exclude", "debounce", "kinds")
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    DEBOUNCE_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    recursive: bool
    include: _containers.RepeatedScalarFieldContainer[str]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    debounce: _duration_pb2.Duration
    kinds: _containers.RepeatedScalarFieldContainer[FileChangeKind]
    def __init__(self, recursive: bool = ..., include: _Optional[_Iterable[str]] = ..., exclude: _Optional[_Iterable[str]] = ..., debounce: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., kinds: _Optional[_Iterable[_Union[FileChangeKind, str]]] = ...) -> None: ...

class FileChange(_message.Message):
    __slots__ = ("kind", "path", "from_path", "is_directory", "time")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FROM_PATH_FIELD_NUMBER: _ClassVar[int]
    IS_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    kind: FileChangeKind
    path: str
    from_path: str
    is_directory: bool
    time: _timestamp_pb2.Timestamp
    def __init__(self, kind: _Optional[_Union[FileChangeKind, str]] = ..., path: _Optional[str] = ..., from_path: _Optional[str] = ..., is_directory: bool = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WatchDirectoryResponse(_message.Message):
    __slots__ = ("ready", "change", "overflow", "unwatched", "keepalive", "ended")
    READY_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    OVERFLOW_FIELD_NUMBER: _ClassVar[int]
    UNWATCHED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ready: WatchReady
    change: FileChange
    overflow: WatchOverflow
    unwatched: UnreadableEntry
    keepalive: WatchKeepalive
    ended: WatchEnded
    def __init__(self, ready: _Optional[_Union[WatchReady, _Mapping]] = ..., change: _Optional[_Union[FileChange, _Mapping]] = ..., overflow: _Optional[_Union[WatchOverflow, _Mapping]] = ..., unwatched: _Optional[_Union[UnreadableEntry, _Mapping]] = ..., keepalive: _Optional[_Union[WatchKeepalive, _Mapping]] = ..., ended: _Optional[_Union[WatchEnded, _Mapping]] = ...) -> None: ...

class WatchReady(_message.Message):
    __slots__ = ("directories",)
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    directories: int
    def __init__(self, directories: _Optional[int] = ...) -> None: ...

class WatchOverflow(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchKeepalive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchEnded(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class GetChangesRequest(_message.Message):
    __slots__ = ("path", "user", "options", "cursor", "wait")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    options: WatchOptions
    cursor: str
    wait: _duration_pb2.Duration
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., options: _Optional[_Union[WatchOptions, _Mapping]] = ..., cursor: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetChangesResponse(_message.Message):
    __slots__ = ("changes", "cursor", "history_lost", "more")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    HISTORY_LOST_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    cursor: str
    history_lost: bool
    more: bool
    def __init__(self, changes: _Optional[_Iterable[_Union[FileChange, _Mapping]]] = ..., cursor: _Optional[str] = ..., history_lost: bool = ..., more: bool = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("path", "user", "include", "exclude", "gitignore", "skip_hidden", "types", "min_size", "max_size", "modified_since", "modified_before", "depth", "max_results")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    GITIGNORE_FIELD_NUMBER: _ClassVar[int]
    SKIP_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    MIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SIZE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_SINCE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    include: _containers.RepeatedScalarFieldContainer[str]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    gitignore: bool
    skip_hidden: bool
    types: _containers.RepeatedScalarFieldContainer[FileType]
    min_size: int
    max_size: int
    modified_since: _timestamp_pb2.Timestamp
    modified_before: _timestamp_pb2.Timestamp
    depth: int
    max_results: int
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., include: _Optional[_Iterable[str]] = ..., exclude: _Optional[_Iterable[str]] = ..., gitignore: bool = ..., skip_hidden: bool = ..., types: _Optional[_Iterable[_Union[FileType, str]]] = ..., min_size: _Optional[int] = ..., max_size: _Optional[int] = ..., modified_since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., modified_before: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., depth: _Optional[int] = ..., max_results: _Optional[int] = ...) -> None: ...

class FindResponse(_message.Message):
    __slots__ = ("entries", "summary")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[EntryInfo]
    summary: FindSummary
    def __init__(self, entries: _Optional[_Iterable[_Union[EntryInfo, _Mapping]]] = ..., summary: _Optional[_Union[FindSummary, _Mapping]] = ...) -> None: ...

class FindSummary(_message.Message):
    __slots__ = ("matched", "visited", "unreadable_count", "unreadable")
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    VISITED_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    matched: int
    visited: int
    unreadable_count: int
    unreadable: _containers.RepeatedCompositeFieldContainer[UnreadableEntry]
    def __init__(self, matched: _Optional[int] = ..., visited: _Optional[int] = ..., unreadable_count: _Optional[int] = ..., unreadable: _Optional[_Iterable[_Union[UnreadableEntry, _Mapping]]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("path", "user", "pattern", "regex", "ignore_case", "include", "exclude", "gitignore", "skip_hidden", "context_before", "context_after", "max_matches", "max_matches_per_file", "max_line_bytes", "count_only")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    GITIGNORE_FIELD_NUMBER: _ClassVar[int]
    SKIP_HIDDEN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_MATCHES_FIELD_NUMBER: _ClassVar[int]
    MAX_MATCHES_PER_FILE_FIELD_NUMBER: _ClassVar[int]
    MAX_LINE_BYTES_FIELD_NUMBER: _ClassVar[int]
    COUNT_ONLY_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    pattern: str
    regex: bool
    ignore_case: bool
    include: _containers.RepeatedScalarFieldContainer[str]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    gitignore: bool
    skip_hidden: bool
    context_before: int
    context_after: int
    max_matches: int
    max_matches_per_file: int
    max_line_bytes: int
    count_only: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., pattern: _Optional[str] = ..., regex: bool = ..., ignore_case: bool = ..., include: _Optional[_Iterable[str]] = ..., exclude: _Optional[_Iterable[str]] = ..., gitignore: bool = ..., skip_hidden: bool = ..., context_before: _Optional[int] = ..., context_after: _Optional[int] = ..., max_matches: _Optional[int] = ..., max_matches_per_file: _Optional[int] = ..., max_line_bytes: _Optional[int] = ..., count_only: bool = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("match", "summary")
    MATCH_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    match: SearchMatch
    summary: SearchSummary
    def __init__(self, match: _Optional[_Union[SearchMatch, _Mapping]] = ..., summary: _Optional[_Union[SearchSummary, _Mapping]] = ...) -> None: ...

class SearchMatch(_message.Message):
    __slots__ = ("path", "line_number", "line", "offset", "matches", "before", "after", "line_truncated")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LINE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LINE_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    path: str
    line_number: int
    line: str
    offset: int
    matches: _containers.RepeatedCompositeFieldContainer[ByteRange]
    before: _containers.RepeatedScalarFieldContainer[str]
    after: _containers.RepeatedScalarFieldContainer[str]
    line_truncated: bool
    def __init__(self, path: _Optional[str] = ..., line_number: _Optional[int] = ..., line: _Optional[str] = ..., offset: _Optional[int] = ..., matches: _Optional[_Iterable[_Union[ByteRange, _Mapping]]] = ..., before: _Optional[_Iterable[str]] = ..., after: _Optional[_Iterable[str]] = ..., line_truncated: bool = ...) -> None: ...

class SearchSummary(_message.Message):
    __slots__ = ("matched_lines", "matched_files", "searched_files", "binary_files", "searched_bytes", "truncated", "unreadable_count", "unreadable")
    MATCHED_LINES_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FILES_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_FILES_FIELD_NUMBER: _ClassVar[int]
    BINARY_FILES_FIELD_NUMBER: _ClassVar[int]
    SEARCHED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    matched_lines: int
    matched_files: int
    searched_files: int
    binary_files: int
    searched_bytes: int
    truncated: bool
    unreadable_count: int
    unreadable: _containers.RepeatedCompositeFieldContainer[UnreadableEntry]
    def __init__(self, matched_lines: _Optional[int] = ..., matched_files: _Optional[int] = ..., searched_files: _Optional[int] = ..., binary_files: _Optional[int] = ..., searched_bytes: _Optional[int] = ..., truncated: bool = ..., unreadable_count: _Optional[int] = ..., unreadable: _Optional[_Iterable[_Union[UnreadableEntry, _Mapping]]] = ...) -> None: ...

class ReadArchiveRequest(_message.Message):
    __slots__ = ("path", "user", "gzip", "include", "exclude", "gitignore", "skip_unreadable")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    GZIP_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    GITIGNORE_FIELD_NUMBER: _ClassVar[int]
    SKIP_UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    gzip: bool
    include: _containers.RepeatedScalarFieldContainer[str]
    exclude: _containers.RepeatedScalarFieldContainer[str]
    gitignore: bool
    skip_unreadable: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., gzip: bool = ..., include: _Optional[_Iterable[str]] = ..., exclude: _Optional[_Iterable[str]] = ..., gitignore: bool = ..., skip_unreadable: bool = ...) -> None: ...

class ReadArchiveResponse(_message.Message):
    __slots__ = ("metadata", "chunk", "summary")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    metadata: ReadArchiveMetadata
    chunk: bytes
    summary: ReadArchiveSummary
    def __init__(self, metadata: _Optional[_Union[ReadArchiveMetadata, _Mapping]] = ..., chunk: _Optional[bytes] = ..., summary: _Optional[_Union[ReadArchiveSummary, _Mapping]] = ...) -> None: ...

class ReadArchiveMetadata(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class ReadArchiveSummary(_message.Message):
    __slots__ = ("entries", "archive_bytes", "sha256", "unreadable_count", "unreadable")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_FIELD_NUMBER: _ClassVar[int]
    entries: int
    archive_bytes: int
    sha256: str
    unreadable_count: int
    unreadable: _containers.RepeatedCompositeFieldContainer[UnreadableEntry]
    def __init__(self, entries: _Optional[int] = ..., archive_bytes: _Optional[int] = ..., sha256: _Optional[str] = ..., unreadable_count: _Optional[int] = ..., unreadable: _Optional[_Iterable[_Union[UnreadableEntry, _Mapping]]] = ...) -> None: ...

class WriteArchiveRequest(_message.Message):
    __slots__ = ("metadata", "chunk")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    metadata: WriteArchiveMetadata
    chunk: bytes
    def __init__(self, metadata: _Optional[_Union[WriteArchiveMetadata, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class WriteArchiveMetadata(_message.Message):
    __slots__ = ("path", "user", "atomic", "max_bytes", "max_entries", "preserve_owner", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ATOMIC_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    PRESERVE_OWNER_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    atomic: bool
    max_bytes: int
    max_entries: int
    preserve_owner: bool
    sha256: str
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., atomic: bool = ..., max_bytes: _Optional[int] = ..., max_entries: _Optional[int] = ..., preserve_owner: bool = ..., sha256: _Optional[str] = ...) -> None: ...

class WriteArchiveResponse(_message.Message):
    __slots__ = ("entry", "entries", "bytes", "sha256")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    entries: int
    bytes: int
    sha256: str
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class EntryInfo(_message.Message):
    __slots__ = ("name", "type", "path", "size", "mode", "permissions", "owner", "group", "modified_time", "symlink_target", "etag", "uid", "gid", "raw_name", "accessed_time", "hard_links", "xattrs")
    class XattrsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_TIME_FIELD_NUMBER: _ClassVar[int]
    SYMLINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    RAW_NAME_FIELD_NUMBER: _ClassVar[int]
    ACCESSED_TIME_FIELD_NUMBER: _ClassVar[int]
    HARD_LINKS_FIELD_NUMBER: _ClassVar[int]
    XATTRS_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: FileType
    path: str
    size: int
    mode: int
    permissions: str
    owner: str
    group: str
    modified_time: _timestamp_pb2.Timestamp
    symlink_target: str
    etag: str
    uid: int
    gid: int
    raw_name: bytes
    accessed_time: _timestamp_pb2.Timestamp
    hard_links: int
    xattrs: _containers.ScalarMap[str, bytes]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[FileType, str]] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., mode: _Optional[int] = ..., permissions: _Optional[str] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., modified_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., symlink_target: _Optional[str] = ..., etag: _Optional[str] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ..., raw_name: _Optional[bytes] = ..., accessed_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., hard_links: _Optional[int] = ..., xattrs: _Optional[_Mapping[str, bytes]] = ...) -> None: ...
