from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OutputStream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTPUT_STREAM_UNSPECIFIED: _ClassVar[OutputStream]
    OUTPUT_STREAM_STDOUT: _ClassVar[OutputStream]
    OUTPUT_STREAM_STDERR: _ClassVar[OutputStream]
    OUTPUT_STREAM_PTY: _ClassVar[OutputStream]
OUTPUT_STREAM_UNSPECIFIED: OutputStream
OUTPUT_STREAM_STDOUT: OutputStream
OUTPUT_STREAM_STDERR: OutputStream
OUTPUT_STREAM_PTY: OutputStream

class ProcessSelector(_message.Message):
    __slots__ = ("id", "tag")
    ID_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    id: str
    tag: str
    def __init__(self, id: _Optional[str] = ..., tag: _Optional[str] = ...) -> None: ...

class PtySize(_message.Message):
    __slots__ = ("cols", "rows")
    COLS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    cols: int
    rows: int
    def __init__(self, cols: _Optional[int] = ..., rows: _Optional[int] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("command", "argv", "cwd", "env", "user", "pty", "stdin", "timeout", "limits", "id", "tag", "label", "backpressure", "keepalive_interval", "login", "session_id", "follower_id", "hold")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PTY_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    BACKPRESSURE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    LOGIN_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    FOLLOWER_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    command: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    cwd: str
    env: _containers.ScalarMap[str, str]
    user: str
    pty: PtySize
    stdin: bool
    timeout: float
    limits: ResourceLimits
    id: str
    tag: str
    label: str
    backpressure: bool
    keepalive_interval: _duration_pb2.Duration
    login: bool
    session_id: str
    follower_id: str
    hold: _duration_pb2.Duration
    def __init__(self, command: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., cwd: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., user: _Optional[str] = ..., pty: _Optional[_Union[PtySize, _Mapping]] = ..., stdin: bool = ..., timeout: _Optional[float] = ..., limits: _Optional[_Union[ResourceLimits, _Mapping]] = ..., id: _Optional[str] = ..., tag: _Optional[str] = ..., label: _Optional[str] = ..., backpressure: bool = ..., keepalive_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., login: bool = ..., session_id: _Optional[str] = ..., follower_id: _Optional[str] = ..., hold: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StartResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: ProcessEvent
    def __init__(self, event: _Optional[_Union[ProcessEvent, _Mapping]] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("process", "from_end", "backpressure", "keepalive_interval", "follower_id", "hold")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    FROM_END_FIELD_NUMBER: _ClassVar[int]
    BACKPRESSURE_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    FOLLOWER_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    from_end: bool
    backpressure: bool
    keepalive_interval: _duration_pb2.Duration
    follower_id: str
    hold: _duration_pb2.Duration
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., from_end: bool = ..., backpressure: bool = ..., keepalive_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., follower_id: _Optional[str] = ..., hold: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., **kwargs) -> None: ...

class AcknowledgeOutputRequest(_message.Message):
    __slots__ = ("process", "follower_id", "received", "release")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWER_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    follower_id: str
    received: OutputOffsets
    release: bool
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., follower_id: _Optional[str] = ..., received: _Optional[_Union[OutputOffsets, _Mapping]] = ..., release: bool = ...) -> None: ...

class AcknowledgeOutputResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OutputOffsets(_message.Message):
    __slots__ = ("stdout", "stderr", "pty")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    PTY_FIELD_NUMBER: _ClassVar[int]
    stdout: int
    stderr: int
    pty: int
    def __init__(self, stdout: _Optional[int] = ..., stderr: _Optional[int] = ..., pty: _Optional[int] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: ProcessEvent
    def __init__(self, event: _Optional[_Union[ProcessEvent, _Mapping]] = ...) -> None: ...

class ProcessEvent(_message.Message):
    __slots__ = ("started", "output", "trimmed", "keepalive", "ended")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    started: ProcessStarted
    output: ProcessOutput
    trimmed: ProcessOutputTrimmed
    keepalive: ProcessKeepalive
    ended: ProcessEnded
    def __init__(self, started: _Optional[_Union[ProcessStarted, _Mapping]] = ..., output: _Optional[_Union[ProcessOutput, _Mapping]] = ..., trimmed: _Optional[_Union[ProcessOutputTrimmed, _Mapping]] = ..., keepalive: _Optional[_Union[ProcessKeepalive, _Mapping]] = ..., ended: _Optional[_Union[ProcessEnded, _Mapping]] = ...) -> None: ...

class ProcessStarted(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: Process
    def __init__(self, process: _Optional[_Union[Process, _Mapping]] = ...) -> None: ...

class ProcessOutput(_message.Message):
    __slots__ = ("stdout", "stderr", "pty", "offset")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    PTY_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    stdout: bytes
    stderr: bytes
    pty: bytes
    offset: int
    def __init__(self, stdout: _Optional[bytes] = ..., stderr: _Optional[bytes] = ..., pty: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...

class ProcessOutputTrimmed(_message.Message):
    __slots__ = ("stream", "to")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    stream: OutputStream
    to: int
    def __init__(self, stream: _Optional[_Union[OutputStream, str]] = ..., to: _Optional[int] = ..., **kwargs) -> None: ...

class ProcessKeepalive(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ProcessEnded(_message.Message):
    __slots__ = ("outcome", "usage", "duration")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    usage: ResourceUsage
    duration: _duration_pb2.Duration
    def __init__(self, outcome: _Optional[_Union[Outcome, _Mapping]] = ..., usage: _Optional[_Union[ResourceUsage, _Mapping]] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Process(_message.Message):
    __slots__ = ("id", "tag", "label", "state", "pid", "command", "argv", "cwd", "user", "pty", "started_at", "ended_at", "outcome", "usage", "written", "kept_from", "live_processes", "input_bytes", "session_id")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[Process.State]
        STATE_RUNNING: _ClassVar[Process.State]
        STATE_STOPPING: _ClassVar[Process.State]
        STATE_ENDED: _ClassVar[Process.State]
    STATE_UNSPECIFIED: Process.State
    STATE_RUNNING: Process.State
    STATE_STOPPING: Process.State
    STATE_ENDED: Process.State
    ID_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PTY_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    KEPT_FROM_FIELD_NUMBER: _ClassVar[int]
    LIVE_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    tag: str
    label: str
    state: Process.State
    pid: int
    command: str
    argv: _containers.RepeatedScalarFieldContainer[str]
    cwd: str
    user: str
    pty: PtySize
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    outcome: Outcome
    usage: ResourceUsage
    written: OutputOffsets
    kept_from: OutputOffsets
    live_processes: int
    input_bytes: int
    session_id: str
    def __init__(self, id: _Optional[str] = ..., tag: _Optional[str] = ..., label: _Optional[str] = ..., state: _Optional[_Union[Process.State, str]] = ..., pid: _Optional[int] = ..., command: _Optional[str] = ..., argv: _Optional[_Iterable[str]] = ..., cwd: _Optional[str] = ..., user: _Optional[str] = ..., pty: _Optional[_Union[PtySize, _Mapping]] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ..., usage: _Optional[_Union[ResourceUsage, _Mapping]] = ..., written: _Optional[_Union[OutputOffsets, _Mapping]] = ..., kept_from: _Optional[_Union[OutputOffsets, _Mapping]] = ..., live_processes: _Optional[int] = ..., input_bytes: _Optional[int] = ..., session_id: _Optional[str] = ...) -> None: ...

class GetProcessRequest(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ...) -> None: ...

class GetProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: Process
    def __init__(self, process: _Optional[_Union[Process, _Mapping]] = ...) -> None: ...

class ListProcessesRequest(_message.Message):
    __slots__ = ("tag", "state")
    TAG_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    tag: str
    state: Process.State
    def __init__(self, tag: _Optional[str] = ..., state: _Optional[_Union[Process.State, str]] = ...) -> None: ...

class ListProcessesResponse(_message.Message):
    __slots__ = ("processes",)
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    processes: _containers.RepeatedCompositeFieldContainer[Process]
    def __init__(self, processes: _Optional[_Iterable[_Union[Process, _Mapping]]] = ...) -> None: ...

class WatchProcessesRequest(_message.Message):
    __slots__ = ("keepalive_interval",)
    KEEPALIVE_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    keepalive_interval: _duration_pb2.Duration
    def __init__(self, keepalive_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchProcessesResponse(_message.Message):
    __slots__ = ("started", "updated", "ended", "deleted_id", "keepalive")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    DELETED_ID_FIELD_NUMBER: _ClassVar[int]
    KEEPALIVE_FIELD_NUMBER: _ClassVar[int]
    started: Process
    updated: Process
    ended: Process
    deleted_id: str
    keepalive: ProcessKeepalive
    def __init__(self, started: _Optional[_Union[Process, _Mapping]] = ..., updated: _Optional[_Union[Process, _Mapping]] = ..., ended: _Optional[_Union[Process, _Mapping]] = ..., deleted_id: _Optional[str] = ..., keepalive: _Optional[_Union[ProcessKeepalive, _Mapping]] = ...) -> None: ...

class SendInputRequest(_message.Message):
    __slots__ = ("process", "data", "offset", "write_id")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    WRITE_ID_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    data: bytes
    offset: int
    write_id: str
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., data: _Optional[bytes] = ..., offset: _Optional[int] = ..., write_id: _Optional[str] = ...) -> None: ...

class SendInputResponse(_message.Message):
    __slots__ = ("input_bytes",)
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    input_bytes: int
    def __init__(self, input_bytes: _Optional[int] = ...) -> None: ...

class StreamInputRequest(_message.Message):
    __slots__ = ("target", "data")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    target: StreamInputTarget
    data: bytes
    def __init__(self, target: _Optional[_Union[StreamInputTarget, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class StreamInputTarget(_message.Message):
    __slots__ = ("process", "offset", "close")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    offset: int
    close: bool
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., offset: _Optional[int] = ..., close: bool = ...) -> None: ...

class StreamInputResponse(_message.Message):
    __slots__ = ("input_bytes",)
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    input_bytes: int
    def __init__(self, input_bytes: _Optional[int] = ...) -> None: ...

class CloseInputRequest(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ...) -> None: ...

class CloseInputResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ResizePtyRequest(_message.Message):
    __slots__ = ("process", "size")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    size: PtySize
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., size: _Optional[_Union[PtySize, _Mapping]] = ...) -> None: ...

class ResizePtyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SendSignalRequest(_message.Message):
    __slots__ = ("process", "signal", "leader_only")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    LEADER_ONLY_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    signal: str
    leader_only: bool
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., signal: _Optional[str] = ..., leader_only: bool = ...) -> None: ...

class SendSignalResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateProcessRequest(_message.Message):
    __slots__ = ("process", "tag", "label")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    tag: str
    label: str
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., tag: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class UpdateProcessResponse(_message.Message):
    __slots__ = ("process",)
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    process: Process
    def __init__(self, process: _Optional[_Union[Process, _Mapping]] = ...) -> None: ...

class StopProcessRequest(_message.Message):
    __slots__ = ("process", "grace")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    grace: _duration_pb2.Duration
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StopProcessResponse(_message.Message):
    __slots__ = ("process", "forced", "surviving_processes")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    FORCED_FIELD_NUMBER: _ClassVar[int]
    SURVIVING_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    process: Process
    forced: bool
    surviving_processes: int
    def __init__(self, process: _Optional[_Union[Process, _Mapping]] = ..., forced: bool = ..., surviving_processes: _Optional[int] = ...) -> None: ...

class DeleteProcessRequest(_message.Message):
    __slots__ = ("process", "stop")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    process: ProcessSelector
    stop: bool
    def __init__(self, process: _Optional[_Union[ProcessSelector, _Mapping]] = ..., stop: bool = ...) -> None: ...

class DeleteProcessResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

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
