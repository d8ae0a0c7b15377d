import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { resolvePath, resolveUser, workingDirectory } from "../../acting-user.js";
import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../../filesystem/access.js";
import { readFile } from "../../filesystem/read-file.js";
import { stat } from "../../filesystem/stat.js";
import { FileWriter, type WriteFileOptions } from "../../filesystem/write-file.js";
import {
  Durability,
  type FilesystemService,
  type ReadFileRequest,
  type StatRequest,
  type WriteFileMetadata,
  type WriteFileRequest,
} from "../../gen/picod/v1/filesystem_pb.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";

const MAX_MODE = 0o7777;

/** picod.v1.FilesystemService: translates and delegates. */
export function createFilesystemService(sandbox: Sandbox): ServiceImpl<typeof FilesystemService> {
  /** Whom a request acts as, and which path it means. */
  function resolve(request: { user: string; path: string }): [Access, string] {
    const { users, root, defaults } = sandbox;
    const user = resolveUser(users, request.user === "" ? defaults.user : request.user);
    return [{ root, user, users }, resolvePath(request.path, user, workingDirectory(user, defaults.workdir), users)];
  }

  return {
    stat(request: StatRequest) {
      const [access, path] = resolve(request);
      return { entry: toEntryInfo(stat(access, path, request.followSymlinks)) };
    },

    async *readFile(request: ReadFileRequest, context: HandlerContext) {
      const [access, path] = resolve(request);
      for await (const event of readFile(access, path, request)) {
        context.signal.throwIfAborted();
        if (event.kind === "opened") yield { response: { case: "metadata", value: { entry: toEntryInfo(event.entry) } } };
        else if (event.kind === "chunk") yield { response: { case: "chunk", value: event.chunk as Uint8Array<ArrayBuffer> } };
        else yield { response: { case: "summary", value: { bytes: event.bytes, sha256: event.sha256 } } };
      }
    },

    async writeFile(requests: AsyncIterable<WriteFileRequest>, context: HandlerContext) {
      let writer: FileWriter | undefined;
      try {
        for await (const { request } of requests) {
          if (request.case === "metadata" && writer === undefined) {
            const [access, path] = resolve(request.value);
            writer = new FileWriter(access, path, toWriteOptions(request.value));
          } else if (request.case === "chunk" && writer !== undefined) {
            await writer.write(request.value);
          } else {
            throw outOfOrder(request.case, writer !== undefined);
          }
        }
        // The stream also ends when the caller has gone, and that is not a whole upload.
        context.signal.throwIfAborted();
        if (writer === undefined) throw new PicodError("INVALID_ARGUMENT", "invalid stream: it ended without a metadata message");
        const { entry, bytesWritten, sha256 } = await writer.commit();
        return { entry: toEntryInfo(entry), bytesWritten, sha256 };
      } finally {
        writer?.close();
      }
    },
  };
}

function outOfOrder(got: WriteFileRequest["request"]["case"], begun: boolean): ConnectError {
  const expected = begun ? "a chunk" : "metadata first";
  return new ConnectError(
    `invalid stream: expected ${expected}, got ${got ?? "a message without content"}`,
    Code.InvalidArgument,
  );
}

function toWriteOptions(metadata: WriteFileMetadata): WriteFileOptions {
  const { mode, offset, size, sha256, durability, precondition } = metadata;
  if (mode !== undefined && mode > MAX_MODE) {
    throw new PicodError("INVALID_ARGUMENT", `invalid mode: 0${mode.toString(8)}: permission bits go from 0 to 07777`);
  }
  if (sha256 !== "" && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new PicodError("INVALID_ARGUMENT", "invalid sha256: expected 64 hexadecimal digits");
  }
  if (durability !== Durability.UNSPECIFIED && durability !== Durability.SYNC) {
    throw new PicodError("INVALID_ARGUMENT", `invalid durability: ${durability}`);
  }
  const condition = precondition?.condition;
  return {
    mode,
    offset,
    size,
    sha256: sha256 === "" ? undefined : sha256.toLowerCase(),
    sync: durability === Durability.SYNC,
    precondition:
      condition?.case === "etag"
        ? { kind: "etag", etag: condition.value }
        : condition?.case === "mustNotExist" && condition.value
          ? { kind: "must-not-exist" }
          : undefined,
  };
}
