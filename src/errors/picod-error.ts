/** Why PicoD refused or failed, where an errno would be ambiguous or absent. Each has its code in `errors/to-connect-error.ts`. */
export type Reason =
  | "INVALID_ARGUMENT"
  | "INVALID_PATH"
  | "OUTSIDE_ROOT"
  | "USER_NOT_FOUND"
  | "USER_NOT_PERMITTED"
  | "GROUP_NOT_FOUND"
  | "ROOT_PROTECTED"
  | "NOT_A_REGULAR_FILE"
  | "OFFSET_BEYOND_END"
  | "FILE_SHRANK"
  | "SIZE_MISMATCH"
  | "CHECKSUM_MISMATCH"
  | "PRECONDITION_FAILED"
  | "ALREADY_EXISTS"
  | "NO_SPACE"
  | "TEXT_NOT_FOUND"
  | "TEXT_NOT_UNIQUE"
  | "PROGRAM_NOT_FOUND"
  | "PROGRAM_NOT_EXECUTABLE"
  | "UPLOAD_NOT_FOUND"
  | "UPLOAD_CONFLICT"
  | "UPLOAD_INCOMPLETE"
  | "UPLOAD_BUSY"
  | "UPLOAD_LIMIT_REACHED"
  | "INVALID_ARCHIVE"
  | "ARCHIVE_LIMIT_REACHED"
  | "PROCESS_LIMIT_REACHED"
  | "PROCESS_ID_CONFLICT"
  | "PROCESS_NOT_FOUND"
  | "PROCESS_ENDED"
  | "PROCESS_RUNNING"
  | "NOT_A_TERMINAL"
  | "INPUT_CLOSED"
  | "INPUT_QUEUE_FULL"
  | "FOLLOWER_NOT_FOUND"
  | "FOLLOWER_LIMIT_REACHED"
  | "FOLLOWER_TOO_SLOW"
  | "WATCHER_TOO_SLOW"
  | "WATCH_LIMIT_REACHED"
  | "TAG_IN_USE"
  | "LIMIT_EXCEEDED"
  | "PATH_BLOCKED"
  | "NOT_TEXT"
  | "IMAGE_NOT_AVAILABLE"
  | "SESSION_LIMIT_REACHED"
  | "SESSION_ENDED"
  | "SCOPE_MISSING"
  | "POLICY_DENIED"
  | "POLICY_LIMIT_REACHED"
  | "SHUTTING_DOWN"
  | "INSTANCE_CHANGED";

/**
 * An expected failure. Operations throw it, the edge turns it into a code of the caller's protocol.
 * Message form: `<what failed>: <subject>: <why>`, no trailing period.
 */
export class PicodError extends Error {
  override readonly name = "PicodError";
  readonly reason: Reason;
  /** Goes to the caller in google.rpc.ErrorInfo, for example the path. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(reason: Reason, message: string, metadata: Readonly<Record<string, string>> = {}, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.metadata = metadata;
  }
}
