import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { describeErrno, errnoName } from "../os/system-error.js";
import { CODE_OF_ERRNO } from "./errno-codes.js";
import { PicodError, type Reason } from "./picod-error.js";

/** A Reason without a code does not compile. */
export const CODE_OF_REASON: Readonly<Record<Reason, Code>> = {
  INVALID_ARGUMENT: Code.InvalidArgument,
  INVALID_PATH: Code.InvalidArgument,
  OUTSIDE_ROOT: Code.PermissionDenied,
  USER_NOT_FOUND: Code.InvalidArgument,
  USER_NOT_PERMITTED: Code.PermissionDenied,
  GROUP_NOT_FOUND: Code.InvalidArgument,
  ROOT_PROTECTED: Code.FailedPrecondition,
  NOT_A_REGULAR_FILE: Code.FailedPrecondition,
  OFFSET_BEYOND_END: Code.OutOfRange,
  FILE_SHRANK: Code.Aborted,
  SIZE_MISMATCH: Code.InvalidArgument,
  CHECKSUM_MISMATCH: Code.DataLoss,
  PRECONDITION_FAILED: Code.FailedPrecondition,
  ALREADY_EXISTS: Code.AlreadyExists,
  NO_SPACE: Code.ResourceExhausted,
  TEXT_NOT_FOUND: Code.FailedPrecondition,
  TEXT_NOT_UNIQUE: Code.FailedPrecondition,
  PROGRAM_NOT_FOUND: Code.NotFound,
  PROGRAM_NOT_EXECUTABLE: Code.PermissionDenied,
  UPLOAD_NOT_FOUND: Code.NotFound,
  UPLOAD_CONFLICT: Code.AlreadyExists,
  UPLOAD_INCOMPLETE: Code.FailedPrecondition,
  UPLOAD_BUSY: Code.FailedPrecondition,
  UPLOAD_LIMIT_REACHED: Code.ResourceExhausted,
  INVALID_ARCHIVE: Code.InvalidArgument,
  ARCHIVE_LIMIT_REACHED: Code.ResourceExhausted,
  PROCESS_LIMIT_REACHED: Code.ResourceExhausted,
  PROCESS_ID_CONFLICT: Code.AlreadyExists,
  PROCESS_NOT_FOUND: Code.NotFound,
  PROCESS_ENDED: Code.FailedPrecondition,
  PROCESS_RUNNING: Code.FailedPrecondition,
  NOT_A_TERMINAL: Code.FailedPrecondition,
  INPUT_CLOSED: Code.FailedPrecondition,
  INPUT_QUEUE_FULL: Code.ResourceExhausted,
  FOLLOWER_NOT_FOUND: Code.NotFound,
  FOLLOWER_LIMIT_REACHED: Code.ResourceExhausted,
  FOLLOWER_TOO_SLOW: Code.ResourceExhausted,
  WATCHER_TOO_SLOW: Code.ResourceExhausted,
  WATCH_LIMIT_REACHED: Code.ResourceExhausted,
  TAG_IN_USE: Code.AlreadyExists,
  LIMIT_EXCEEDED: Code.ResourceExhausted,
  PATH_BLOCKED: Code.PermissionDenied,
  NOT_TEXT: Code.FailedPrecondition,
  IMAGE_NOT_AVAILABLE: Code.FailedPrecondition,
  SESSION_LIMIT_REACHED: Code.ResourceExhausted,
  SESSION_ENDED: Code.Aborted,
  SCOPE_MISSING: Code.PermissionDenied,
  POLICY_DENIED: Code.PermissionDenied,
  POLICY_LIMIT_REACHED: Code.ResourceExhausted,
  SHUTTING_DOWN: Code.Unavailable,
  INSTANCE_CHANGED: Code.Aborted,
};

/** What a failed system call was about, in words. */
const VERB_OF_SYSCALL: Readonly<Record<string, string>> = {
  chdir: "enter the working directory",
  mkdir: "make the directory",
  link: "create",
  rename: "replace",
  unlink: "remove",
  rmdir: "remove",
  readdir: "list",
  chown: "change the owner of",
  chmod: "change the mode of",
  utime: "change the times of",
  setxattr: "set an extended attribute of",
  removexattr: "remove an extended attribute of",
  getxattr: "read an extended attribute of",
  spawn: "start",
};

/**
 * The one place where an error gets its code. What is not expected goes out as a bare internal error with the request id, under
 * which the cause is logged.
 */
export function toConnectError(error: unknown, requestId: string): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof PicodError)
    return withInfo(error, error.message, CODE_OF_REASON[error.reason], error.reason, error.metadata);
  const errno = errnoName(error);
  const code = errno === undefined ? undefined : CODE_OF_ERRNO[errno];
  if (errno !== undefined && code !== undefined) return fromSystemError(error as NodeJS.ErrnoException, errno, code);
  if (error instanceof Error && error.name === "AbortError") return new ConnectError("the call was cancelled", Code.Canceled);
  return new ConnectError(`internal error (request id ${requestId})`, Code.Internal, undefined, undefined, error);
}

function fromSystemError(error: NodeJS.ErrnoException, errno: string, code: Code): ConnectError {
  const verb = VERB_OF_SYSCALL[error.syscall ?? ""] ?? error.syscall ?? "continue";
  const subject = error.path === undefined ? "" : ` ${error.path}`;
  const metadata = error.path === undefined ? {} : { path: error.path };
  return withInfo(error, `cannot ${verb}${subject}: ${describeErrno(error)}`, code, errno, metadata);
}

function withInfo(
  cause: unknown,
  message: string,
  code: Code,
  reason: string,
  metadata: Readonly<Record<string, string>>,
): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "picod", metadata } };
  return new ConnectError(message, code, undefined, [info], cause);
}
