from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_SYNC: _ClassVar[Durability]

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
FILE_TYPE_UNSPECIFIED: FileType
FILE_TYPE_FILE: FileType
FILE_TYPE_DIRECTORY: FileType
FILE_TYPE_SYMLINK: FileType
FILE_TYPE_FIFO: FileType
FILE_TYPE_SOCKET: FileType
FILE_TYPE_CHARACTER_DEVICE: FileType
FILE_TYPE_BLOCK_DEVICE: FileType

class StatRequest(_message.Message):
    __slots__ = ("path", "user", "follow_symlinks")
    PATH_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_SYMLINKS_FIELD_NUMBER: _ClassVar[int]
    path: str
    user: str
    follow_symlinks: bool
    def __init__(self, path: _Optional[str] = ..., user: _Optional[str] = ..., follow_symlinks: bool = ...) -> None: ...

class StatResponse(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ...) -> None: ...

class ReadFileRequest(_message.Message):
    __slots__ = ("path", "offset", "length", "checksum", "user")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    path: str
    offset: int
    length: int
    checksum: bool
    user: str
    def __init__(self, path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., checksum: bool = ..., user: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("bytes", "sha256")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    sha256: str
    def __init__(self, bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class WriteFileRequest(_message.Message):
    __slots__ = ("metadata", "chunk")
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    metadata: WriteFileMetadata
    chunk: bytes
    def __init__(self, metadata: _Optional[_Union[WriteFileMetadata, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class WriteFileMetadata(_message.Message):
    __slots__ = ("path", "mode", "user", "offset", "sha256", "size", "durability", "precondition")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    path: str
    mode: int
    user: str
    offset: int
    sha256: str
    size: int
    durability: Durability
    precondition: Precondition
    def __init__(self, path: _Optional[str] = ..., mode: _Optional[int] = ..., user: _Optional[str] = ..., offset: _Optional[int] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., precondition: _Optional[_Union[Precondition, _Mapping]] = ...) -> None: ...

class Precondition(_message.Message):
    __slots__ = ("must_not_exist", "etag")
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    must_not_exist: bool
    etag: str
    def __init__(self, must_not_exist: bool = ..., etag: _Optional[str] = ...) -> None: ...

class WriteFileResponse(_message.Message):
    __slots__ = ("entry", "bytes_written", "sha256")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    BYTES_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    entry: EntryInfo
    bytes_written: int
    sha256: str
    def __init__(self, entry: _Optional[_Union[EntryInfo, _Mapping]] = ..., bytes_written: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class EntryInfo(_message.Message):
    __slots__ = ("name", "type", "path", "size", "mode", "permissions", "owner", "group", "modified_time", "symlink_target", "etag")
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
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[FileType, str]] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., mode: _Optional[int] = ..., permissions: _Optional[str] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., modified_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., symlink_target: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...
