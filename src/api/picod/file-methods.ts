import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type Caller, callerOf, callKey } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { readFile } from "../../filesystem/read-file.js";
import { stat } from "../../filesystem/stat.js";
import { UploadPart } from "../../filesystem/uploads/upload-part.js";
import { FileWriter, type WriteFileOptions } from "../../filesystem/write-file.js";
import type {
  FilesystemService,
  ReadFileRequest,
  StatRequest,
  WriteFileMetadata,
  WriteFileRequest,
} from "../../gen/picod/v1/filesystem_pb.js";
import { unlessAborted } from "../../process/unless-aborted.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";
import { toNewPart, toPendingUpload } from "./upload-methods.js";
import { toMode, toPrecondition, toSha256, toSync } from "./write-options.js";

/** The part of picod.v1.FilesystemService that is about single files. */
export function createFileMethods(
  sandbox: Sandbox,
): Pick<ServiceImpl<typeof FilesystemService>, "stat" | "readFile" | "writeFile"> {
  return {
    stat(request: StatRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      return { entry: toEntryInfo(stat(access, path, request.followSymlinks, request.xattrs)) };
    },

    async *readFile(request: ReadFileRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      for await (const event of readFile(access, path, request)) {
        context.signal.throwIfAborted();
        if (event.kind === "opened") yield { response: { case: "metadata", value: { entry: toEntryInfo(event.entry) } } };
        else if (event.kind === "chunk") yield { response: { case: "chunk", value: event.chunk as Uint8Array<ArrayBuffer> } };
        else yield { response: { case: "summary", value: { bytes: event.bytes, sha256: event.sha256, etag: event.etag } } };
      }
    },

    async writeFile(requests: AsyncIterable<WriteFileRequest>, context: HandlerContext) {
      let writer: FileWriter | UploadPart | undefined;
      const call = context.values.get(callKey);
      call.reusesMessages = true;
      try {
        for await (const { request } of untilDropped(requests, () => writer)) {
          if (request.case === "metadata" && writer === undefined) {
            writer = openWriter(sandbox, request.value, callerOf(context));
          } else if (request.case === "chunk" && writer !== undefined) {
            await writer.write(request.value);
          } else {
            throw outOfOrder(request.case, writer !== undefined);
          }
          call.hasArrived = writer.isComplete;
        }
        // The stream also ends when the caller has gone, and that is not a whole upload.
        context.signal.throwIfAborted();
        if (writer === undefined) throw new PicodError("INVALID_ARGUMENT", "invalid stream: it ended without a metadata message");
        if (writer instanceof UploadPart)
          return { ...writer.finish(), upload: toPendingUpload(sandbox.uploads.describe(writer)) };
        const { entry, bytesWritten, sha256 } = await writer.commit();
        return { entry: toEntryInfo(entry), bytesWritten, sha256 };
      } finally {
        writer?.close();
      }
    },
  };
}

function openWriter(sandbox: Sandbox, metadata: WriteFileMetadata, caller: Caller | undefined): FileWriter | UploadPart {
  const [access, path] = resolveFile(sandbox, metadata, caller);
  if (metadata.uploadId !== "") return sandbox.uploads.addPart(access, toNewPart(metadata, path));
  return new FileWriter(access, path, toWriteOptions(metadata));
}

/** Passes messages on. Who waits for the next of a part whose upload is dropped hears of that at once. */
async function* untilDropped(
  requests: AsyncIterable<WriteFileRequest>,
  writer: () => FileWriter | UploadPart | undefined,
): AsyncGenerator<WriteFileRequest> {
  const iterator = requests[Symbol.asyncIterator]();
  try {
    for (;;) {
      const adding = writer();
      const next = iterator.next();
      const { done, value } = await (adding instanceof UploadPart ? unlessAborted(next, adding.upload.gone) : next);
      if (done) return;
      yield value;
    }
  } finally {
    // Not waited for: it would wait for a message that may never come.
    iterator.return?.().catch(() => undefined);
  }
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
  return {
    mode: toMode(mode),
    offset,
    size,
    sha256: toSha256(sha256),
    sync: toSync(durability),
    precondition: toPrecondition(precondition),
  };
}
