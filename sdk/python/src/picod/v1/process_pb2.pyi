from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExecuteRequest(_message.Message):
    __slots__ = ("command", "timeout", "cwd", "env", "user", "stdin", "argv", "max_output_bytes", "id", "limits")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    command: str
    timeout: float
    cwd: str
    env: _containers.ScalarMap[str, str]
    user: str
    stdin: bytes
    argv: _containers.RepeatedScalarFieldContainer[str]
    max_output_bytes: int
    id: str
    limits: ResourceLimits
    def __init__(self, command: _Optional[str] = ..., timeout: _Optional[float] = ..., cwd: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., user: _Optional[str] = ..., stdin: _Optional[bytes] = ..., argv: _Optional[_Iterable[str]] = ..., max_output_bytes: _Optional[int] = ..., id: _Optional[str] = ..., limits: _Optional[_Union[ResourceLimits, _Mapping]] = ...) -> None: ...

class ResourceLimits(_message.Message):
    __slots__ = ("memory_bytes", "cpu_seconds", "processes", "open_files", "file_size_bytes")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    FILE_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    cpu_seconds: int
    processes: int
    open_files: int
    file_size_bytes: int
    def __init__(self, memory_bytes: _Optional[int] = ..., cpu_seconds: _Optional[int] = ..., processes: _Optional[int] = ..., open_files: _Optional[int] = ..., file_size_bytes: _Optional[int] = ...) -> None: ...

class ExecuteResponse(_message.Message):
    __slots__ = ("stdout", "stderr", "exit_code", "outcome", "stdout_summary", "stderr_summary", "duration", "usage", "process_id")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STDOUT_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    STDERR_SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    stdout: str
    stderr: str
    exit_code: int
    outcome: Outcome
    stdout_summary: OutputSummary
    stderr_summary: OutputSummary
    duration: _duration_pb2.Duration
    usage: ResourceUsage
    process_id: str
    def __init__(self, stdout: _Optional[str] = ..., stderr: _Optional[str] = ..., exit_code: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ..., stdout_summary: _Optional[_Union[OutputSummary, _Mapping]] = ..., stderr_summary: _Optional[_Union[OutputSummary, _Mapping]] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., usage: _Optional[_Union[ResourceUsage, _Mapping]] = ..., process_id: _Optional[str] = ...) -> None: ...

class OutputSummary(_message.Message):
    __slots__ = ("total_bytes", "omitted_bytes", "omitted_lines", "utf8_replaced")
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    OMITTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    OMITTED_LINES_FIELD_NUMBER: _ClassVar[int]
    UTF8_REPLACED_FIELD_NUMBER: _ClassVar[int]
    total_bytes: int
    omitted_bytes: int
    omitted_lines: int
    utf8_replaced: bool
    def __init__(self, total_bytes: _Optional[int] = ..., omitted_bytes: _Optional[int] = ..., omitted_lines: _Optional[int] = ..., utf8_replaced: bool = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("reason", "exit_code", "signal", "forced", "surviving_processes", "message")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REASON_UNSPECIFIED: _ClassVar[Outcome.Reason]
        REASON_EXITED: _ClassVar[Outcome.Reason]
        REASON_SIGNALED: _ClassVar[Outcome.Reason]
        REASON_TIMED_OUT: _ClassVar[Outcome.Reason]
        REASON_CANCELLED: _ClassVar[Outcome.Reason]
        REASON_OUT_OF_MEMORY: _ClassVar[Outcome.Reason]
        REASON_SPAWN_FAILED: _ClassVar[Outcome.Reason]
        REASON_LOST: _ClassVar[Outcome.Reason]
    REASON_UNSPECIFIED: Outcome.Reason
    REASON_EXITED: Outcome.Reason
    REASON_SIGNALED: Outcome.Reason
    REASON_TIMED_OUT: Outcome.Reason
    REASON_CANCELLED: Outcome.Reason
    REASON_OUT_OF_MEMORY: Outcome.Reason
    REASON_SPAWN_FAILED: Outcome.Reason
    REASON_LOST: Outcome.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    FORCED_FIELD_NUMBER: _ClassVar[int]
    SURVIVING_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: Outcome.Reason
    exit_code: int
    signal: str
    forced: bool
    surviving_processes: int
    message: str
    def __init__(self, reason: _Optional[_Union[Outcome.Reason, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[str] = ..., forced: bool = ..., surviving_processes: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class ResourceUsage(_message.Message):
    __slots__ = ("user_time", "system_time", "max_rss_bytes")
    USER_TIME_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    user_time: _duration_pb2.Duration
    system_time: _duration_pb2.Duration
    max_rss_bytes: int
    def __init__(self, user_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., system_time: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., max_rss_bytes: _Optional[int] = ...) -> None: ...
