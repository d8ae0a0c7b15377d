"""Client of PicoD, the daemon that runs commands and moves files inside a sandbox."""

from ._version import __version__
from .aio import AsyncPicoDClient
from .aio_directory_watch import AsyncDirectoryWatch
from .aio_entry_iterators import AsyncDirectoryEntries, AsyncFoundEntries, AsyncSearchMatches
from .aio_process import AsyncProcess, AsyncProcessWatch
from .client import PicoDClient
from .connection import DEFAULT_PORT, TlsOptions
from .directory_transfer import DirectoryDownload, DirectoryUpload
from .directory_watch import DirectoryWatch
from .entries import CopyResult, FindSummary, PendingUpload, SearchMatch, SearchSummary, SignedUrl, UnreadableEntry
from .entry_iterators import DirectoryEntries, FoundEntries, SearchMatches
from .errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    CommandError,
    CommandTimeoutError,
    DaemonRestartedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InterpreterNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    OutputTruncatedError,
    PermissionDeniedError,
    PicoDError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from .file_changes import Changes, ChangesLost, FileChange, FileChangeKind, Unwatched, WatchEvent
from .names import path_from_bytes, path_to_bytes
from .output import ProcessOutput
from .process import Process, ProcessWatch
from .processes import (
    OutputOffsets,
    ProcessEvent,
    ProcessEventKind,
    ProcessInfo,
    ProcessResult,
    ProcessState,
    StopResult,
)
from .progress import ProgressCallback
from .results import (
    EntryInfo,
    ExecuteResult,
    FileType,
    Outcome,
    OutcomeReason,
    OutputSummary,
    ResourceLimits,
    ResourceUsage,
)
from .retry import RetryPolicy
from .sync import SyncResult

__all__ = [
    "DEFAULT_PORT",
    "AbortedError",
    "AlreadyExistsError",
    "AsyncDirectoryEntries",
    "AsyncDirectoryWatch",
    "AsyncFoundEntries",
    "AsyncPicoDClient",
    "AsyncProcess",
    "AsyncProcessWatch",
    "AsyncSearchMatches",
    "CancelledError",
    "Changes",
    "ChangesLost",
    "CommandError",
    "CommandTimeoutError",
    "CopyResult",
    "DaemonRestartedError",
    "DataLossError",
    "DeadlineExceededError",
    "DirectoryDownload",
    "DirectoryEntries",
    "DirectoryUpload",
    "DirectoryWatch",
    "EntryInfo",
    "ExecuteResult",
    "FailedPreconditionError",
    "FileChange",
    "FileChangeKind",
    "FileType",
    "FindSummary",
    "FoundEntries",
    "InternalError",
    "InterpreterNotFoundError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "Outcome",
    "OutcomeReason",
    "OutputOffsets",
    "OutputSummary",
    "OutputTruncatedError",
    "PendingUpload",
    "PermissionDeniedError",
    "PicoDClient",
    "PicoDError",
    "Process",
    "ProcessEvent",
    "ProcessEventKind",
    "ProcessInfo",
    "ProcessOutput",
    "ProcessResult",
    "ProcessState",
    "ProcessWatch",
    "ProgressCallback",
    "ResourceExhaustedError",
    "ResourceLimits",
    "ResourceUsage",
    "RetryPolicy",
    "SearchMatch",
    "SearchMatches",
    "SearchSummary",
    "SignedUrl",
    "StopResult",
    "SyncResult",
    "TlsOptions",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnreadableEntry",
    "Unwatched",
    "WatchEvent",
    "__version__",
    "path_from_bytes",
    "path_to_bytes",
]
