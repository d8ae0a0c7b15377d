import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient as createServiceClient } from "@connectrpc/connect";
import { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import {
  type ExecuteRequestSchema,
  type ExecuteResponse,
  ProcessService,
  type StartRequestSchema,
} from "../gen/picod/v1/process_pb.js";
import { createFiles, type Files } from "./files/files.js";
import { run } from "./run.js";
import { type StartedProcess, startProcess } from "./start.js";
import { connect, type TlsOptions } from "./transport.js";

export type {
  CopyResponse,
  EntryInfo,
  FileChange,
  FindSummary,
  ReadArchiveSummary,
  SearchMatch,
  SearchSummary,
  UnreadableEntry,
  WriteArchiveResponse,
} from "../gen/picod/v1/filesystem_pb.js";
// biome-ignore lint/performance/noBarrelFile: the entry of a package exports what its users name.
export { Durability, FileChangeKind, FileType, MoveMode } from "../gen/picod/v1/filesystem_pb.js";
export type { ExecuteResponse, Outcome, Process, ProcessEnded } from "../gen/picod/v1/process_pb.js";
export { Outcome_Reason, Process_State } from "../gen/picod/v1/process_pb.js";
export type { DownloadOptions } from "./files/download.js";
export type { Files } from "./files/files.js";
export type { FindOptions, ListOptions, ListSummary, SearchOptions } from "./files/listings.js";
export type { Progress } from "./files/progress.js";
export type { Results } from "./files/results.js";
export type {
  AccessOptions,
  CopyOptions,
  MakeDirectoryOptions,
  MoveOptions,
  RemoveOptions,
  SignedUrlOptions,
  SimpleCalls,
  WriteTextOptions,
} from "./files/simple-calls.js";
export type { UploadOptions } from "./files/upload.js";
export type { WatchEvent, WatchOptions } from "./files/watch.js";
export type { ProcessChunk, StartedProcess } from "./start.js";
export type { TlsOptions } from "./transport.js";
export type { DownloadDirOptions, DownloadedDir } from "./trees/download-dir.js";
export type { SyncDirOptions, SyncedDir } from "./trees/sync-dir.js";
export type { LocalSelection, UploadDirOptions } from "./trees/upload-dir.js";

export interface ClientOptions {
  /** `http://host:49983`, or `https://…`. */
  readonly url: string;
  /** The daemon's token; none for a daemon without. */
  readonly token?: string;
  /** For `https://`: an authority of one's own, and a client certificate. */
  readonly tls?: TlsOptions;
}

/** Everything a sandbox offers, over one connection. Errors are ConnectErrors with the codes that the proto documents. */
export interface PicodClient extends Files, Disposable {
  /** Every RPC, typed. */
  readonly filesystem: Client<typeof FilesystemService>;
  readonly process: Client<typeof ProcessService>;
  /**
   * Runs a command line, or a program with arguments, to its end. A command that fails is a result. One whose answer was lost with
   * its connection is asked for again under an id, and runs once; when the daemon was restarted meanwhile, that cannot be known, and
   * the error says so (ABORTED, reason INSTANCE_CHANGED). Aborting the signal, or closing the client, ends the command, unless it has
   * an `id` of the caller's: then it runs on, to be asked for again.
   */
  run(command: string | readonly string[], options?: RunOptions): Promise<ExecuteResponse>;
  /** Starts a process that outlives the connection, and follows its output through broken connections. */
  start(command: string | readonly string[], options?: StartOptions): Promise<StartedProcess>;
  /** Ends the connection. */
  close(): void;
}

export type RunOptions = Omit<MessageInitShape<typeof ExecuteRequestSchema>, "command" | "argv" | "$typeName"> & {
  readonly signal?: AbortSignal;
  /** False: a command whose answer is lost is lost, and its connection takes it along. Default: true. */
  readonly repeat?: boolean;
};
export type StartOptions = Omit<MessageInitShape<typeof StartRequestSchema>, "command" | "argv" | "$typeName">;
export function createClient({ url, token, tls }: ClientOptions): PicodClient {
  const connection = connect(url, token, tls);
  const filesystem = createServiceClient(FilesystemService, connection.transport);
  const process = createServiceClient(ProcessService, connection.transport);
  return {
    ...createFiles(filesystem, connection),
    filesystem,
    process,
    run(command, { signal, repeat = true, ...options } = {}) {
      const request = { ...options, ...what(command) };
      if (!repeat) return process.execute(request, signal === undefined ? {} : { signal });
      const result = run(process, connection, request, signal);
      connection.beforeClosing(result);
      return result;
    },
    start: (command, options = {}) => startProcess(process, connection, { ...options, ...what(command) }),
    close: connection.close,
    [Symbol.dispose]: connection.close,
  };
}

const what = (command: string | readonly string[]) => (typeof command === "string" ? { command } : { argv: [...command] });
