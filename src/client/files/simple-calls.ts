import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type {
  CopyRequestSchema,
  CopyResponse,
  CreateSignedUrlRequestSchema,
  EntryInfo,
  FilesystemService,
  MakeDirectoryRequestSchema,
  MoveRequestSchema,
  RemoveRequestSchema,
  WriteFileMetadataSchema,
} from "../../gen/picod/v1/filesystem_pb.js";
import { insistently } from "../insistently.js";
import type { Connection } from "../transport.js";
import { readWhole } from "./read-whole.js";

const CHUNK_BYTES = 512 * 1024;

interface Cancellable {
  readonly signal?: AbortSignal;
}

export type AccessOptions = Cancellable & { readonly user?: string };
export type MakeDirectoryOptions = Omit<MessageInitShape<typeof MakeDirectoryRequestSchema>, "path" | "$typeName"> & Cancellable;
export type RemoveOptions = Omit<MessageInitShape<typeof RemoveRequestSchema>, "path" | "$typeName"> & Cancellable;
export type MoveOptions = Omit<MessageInitShape<typeof MoveRequestSchema>, "source" | "destination" | "$typeName"> & Cancellable;
export type CopyOptions = Omit<MessageInitShape<typeof CopyRequestSchema>, "source" | "destination" | "$typeName"> & Cancellable;
export type SignedUrlOptions = Omit<MessageInitShape<typeof CreateSignedUrlRequestSchema>, "path" | "$typeName"> & Cancellable;
export type WriteTextOptions = Pick<MessageInitShape<typeof WriteFileMetadataSchema>, "mode" | "user" | "durability"> &
  Cancellable;

/** Calls that are one RPC each. */
export interface SimpleCalls {
  /** Whether something has that name; a dangling link is something. @throws as Stat, but for NOT_FOUND. */
  exists(path: string, options?: AccessOptions): Promise<boolean>;
  /** The whole file as UTF-8, verified. @throws as ReadFile. */
  readText(path: string, options?: AccessOptions): Promise<string>;
  /** Replaces or makes a file, whole or not at all. `mode`: permission bits, by default those it has, else 0644. @throws as WriteFile. */
  writeText(path: string, text: string, options?: WriteTextOptions): Promise<EntryInfo>;
  /** Makes a directory and its missing parents. One that is there already is no error, unless `mustNotExist`. @throws as MakeDirectory. */
  makeDirectory(path: string, options?: MakeDirectoryOptions): Promise<EntryInfo>;
  /** Returns how many files, directories and links were removed. @throws as Remove. */
  remove(path: string, options?: RemoveOptions): Promise<number>;
  /** Not repeated when the connection breaks: it may have happened. @throws as Move. */
  move(source: string, destination: string, options?: MoveOptions): Promise<EntryInfo>;
  /** Not repeated when the connection breaks: it may have happened. @throws as Copy. */
  copy(source: string, destination: string, options?: CopyOptions): Promise<CopyResponse>;
  /** An address that needs no token: for GET, and 5 minutes, unless `method` and `lifetime` say otherwise. @throws as CreateSignedUrl. */
  signedUrl(path: string, options?: SignedUrlOptions): Promise<string>;
}

export function createSimpleCalls(filesystem: Client<typeof FilesystemService>, connection: Connection): SimpleCalls {
  const cancellable = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
  return {
    exists: (path, { signal, ...request } = {}) =>
      insistently(connection, signal, async (options) => {
        try {
          await filesystem.stat({ ...request, path }, options);
          return true;
        } catch (error) {
          if (ConnectError.from(error).code !== Code.NotFound) throw error;
          return false;
        }
      }),
    async readText(path, { signal, ...request } = {}) {
      const content = await insistently(connection, signal, (options) => readWhole(filesystem, { ...request, path }, options));
      return content.toString();
    },
    writeText: (path, text, { signal, ...metadata } = {}) =>
      insistently(connection, signal, async (options) => {
        const { entry } = await filesystem.writeFile(asRequests({ ...metadata, path }, Buffer.from(text)), options);
        return entry as EntryInfo;
      }),
    async makeDirectory(path, { signal, ...request } = {}) {
      const make = async (options: CallOptions) =>
        (await filesystem.makeDirectory({ ...request, path }, options)).entry as EntryInfo;
      // What is there when it is asked for again may be its own.
      return request.mustNotExist ? make(cancellable(signal)) : insistently(connection, signal, make);
    },
    remove(path, { signal, ...request } = {}) {
      let mayBeGone = request.missingOk ?? false;
      return insistently(connection, signal, async (options) => {
        const missingOk = mayBeGone;
        mayBeGone = true;
        return Number((await filesystem.remove({ ...request, path, missingOk }, options)).removed);
      });
    },
    move: async (source, destination, { signal, ...request } = {}) =>
      (await filesystem.move({ ...request, source, destination }, cancellable(signal))).entry as EntryInfo,
    copy: (source, destination, { signal, ...request } = {}) =>
      filesystem.copy({ ...request, source, destination }, cancellable(signal)),
    signedUrl: (path, { signal, ...request } = {}) =>
      insistently(connection, signal, async (options) => {
        const { url } = await filesystem.createSignedUrl({ ...request, path }, options);
        return new URL(url, connection.url).href;
      }),
  };
}

async function* asRequests(metadata: MessageInitShape<typeof WriteFileMetadataSchema>, content: Buffer<ArrayBuffer>) {
  yield { request: { case: "metadata" as const, value: { ...metadata, size: BigInt(content.length) } } };
  for (let at = 0; at < content.length; at += CHUNK_BYTES) {
    yield { request: { case: "chunk" as const, value: content.subarray(at, at + CHUNK_BYTES) } };
  }
}
