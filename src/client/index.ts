import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient as createServiceClient } from "@connectrpc/connect";
import { type EntryInfo, FilesystemService, type WriteFileMetadataSchema } from "../gen/picod/v1/filesystem_pb.js";
import {
  type ExecuteRequestSchema,
  type ExecuteResponse,
  ProcessService,
  type StartRequestSchema,
} from "../gen/picod/v1/process_pb.js";
import { download } from "./download.js";
import { type StartedProcess, startProcess } from "./start.js";
import { connect } from "./transport.js";
import { upload } from "./upload.js";

export type { EntryInfo } from "../gen/picod/v1/filesystem_pb.js";
// biome-ignore lint/performance/noBarrelFile: the entry of a package exports what its users name.
export { FileType } from "../gen/picod/v1/filesystem_pb.js";
export type { ExecuteResponse, Outcome, Process, ProcessEnded } from "../gen/picod/v1/process_pb.js";
export { Outcome_Reason, Process_State } from "../gen/picod/v1/process_pb.js";
export type { ProcessChunk, StartedProcess } from "./start.js";

export interface ClientOptions {
  /** `http://host:49983`. */
  readonly url: string;
  /** The daemon's token; none for a daemon without. */
  readonly token?: string;
}

/** Everything a sandbox offers, over one connection. Errors are ConnectErrors with the codes that the proto documents. */
export interface PicodClient extends Disposable {
  /** Every RPC, typed. */
  readonly filesystem: Client<typeof FilesystemService>;
  readonly process: Client<typeof ProcessService>;
  /** Runs a command line, or a program with arguments, to its end. A command that fails is a result. */
  run(command: string | readonly string[], options?: RunOptions): Promise<ExecuteResponse>;
  /** Starts a process that outlives the connection, and follows its output through broken connections. */
  start(command: string | readonly string[], options?: StartOptions): Promise<StartedProcess>;
  /** Stores a local file in the sandbox as a whole, or not at all. */
  upload(localPath: string, remotePath: string, options?: UploadOptions): Promise<EntryInfo | undefined>;
  /** Puts a file of the sandbox in place of a local one, verified; the local file stays what it was after any error. */
  download(
    remotePath: string,
    localPath: string,
    options?: { readonly user?: string; readonly signal?: AbortSignal },
  ): Promise<void>;
  /** Ends the connection. */
  close(): void;
}

export type RunOptions = Omit<MessageInitShape<typeof ExecuteRequestSchema>, "command" | "argv" | "$typeName"> & {
  readonly signal?: AbortSignal;
};
export type StartOptions = Omit<MessageInitShape<typeof StartRequestSchema>, "command" | "argv" | "$typeName">;
export type UploadOptions = Pick<MessageInitShape<typeof WriteFileMetadataSchema>, "mode" | "user"> & {
  readonly signal?: AbortSignal;
};

export function createClient({ url, token }: ClientOptions): PicodClient {
  const connection = connect(url, token);
  const filesystem = createServiceClient(FilesystemService, connection.transport);
  const process = createServiceClient(ProcessService, connection.transport);
  return {
    filesystem,
    process,
    run: (command, { signal, ...options } = {}) =>
      process.execute({ ...options, ...what(command) }, signal === undefined ? {} : { signal }),
    start: (command, options = {}) => startProcess(process, { ...options, ...what(command) }, connection.closed),
    upload: (localPath, remotePath, options = {}) => upload(filesystem, localPath, remotePath, options),
    download: (remotePath, localPath, options = {}) => download(filesystem, remotePath, localPath, options),
    close: connection.close,
    [Symbol.dispose]: connection.close,
  };
}

const what = (command: string | readonly string[]) => (typeof command === "string" ? { command } : { argv: [...command] });
