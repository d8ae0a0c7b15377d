import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { PathFilter } from "../../filesystem/patterns/path-filter.js";
import { readArchive, type Unreadable } from "../../filesystem/read-archive.js";
import { type WriteArchiveOptions, writeArchive } from "../../filesystem/write-archive.js";
import type {
  FilesystemService,
  ReadArchiveRequest,
  WriteArchiveMetadata,
  WriteArchiveRequest,
} from "../../gen/picod/v1/filesystem_pb.js";
import { describeErrno, errnoName } from "../../os/system-error.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";

/** The part of picod.v1.FilesystemService that is about directories as one stream. */
export function createArchiveMethods(
  sandbox: Sandbox,
): Pick<ServiceImpl<typeof FilesystemService>, "readArchive" | "writeArchive"> {
  return {
    async *readArchive(request: ReadArchiveRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      const { gzip, include, exclude, gitignore, skipUnreadable } = request;
      const filtered = include.length > 0 || exclude.length > 0 || gitignore;
      const filter = filtered ? new PathFilter({ include, exclude, gitignore }) : undefined;
      for await (const event of readArchive(access, path, { gzip, filter, skipUnreadable }, context.signal)) {
        context.signal.throwIfAborted();
        if (event.kind === "opened") yield { response: { case: "metadata", value: { entry: toEntryInfo(event.entry) } } };
        else if (event.kind === "chunk") yield { response: { case: "chunk", value: event.chunk as Uint8Array<ArrayBuffer> } };
        else {
          const { entries, bytes: archiveBytes, sha256, unreadableCount } = event;
          const unreadable = event.unreadable.map(toUnreadableEntry);
          yield { response: { case: "summary", value: { entries, archiveBytes, sha256, unreadableCount, unreadable } } };
        }
      }
    },

    async writeArchive(requests: AsyncIterable<WriteArchiveRequest>, context: HandlerContext) {
      const messages = requests[Symbol.asyncIterator]();
      const first = await messages.next();
      context.signal.throwIfAborted();
      if (first.done) throw new PicodError("INVALID_ARGUMENT", "invalid stream: it ended without a metadata message");
      const { request } = first.value;
      if (request.case !== "metadata") throw outOfOrder("metadata first", request.case);
      const [access, path] = resolveFile(sandbox, request.value, callerOf(context));
      const chunks = chunksOf(messages, context.signal);
      const { entry, ...rest } = await writeArchive(access, path, toOptions(request.value), chunks, context.signal);
      return { entry: toEntryInfo(entry), ...rest };
    },
  };
}

async function* chunksOf(messages: AsyncIterator<WriteArchiveRequest>, abortSignal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { request } = next.value;
    if (request.case !== "chunk") throw outOfOrder("a chunk", request.case);
    yield request.value;
  }
  // The stream also ends when the caller has gone, and that is not a whole archive.
  abortSignal.throwIfAborted();
}

function outOfOrder(expected: string, got: string | undefined): ConnectError {
  return new ConnectError(
    `invalid stream: expected ${expected}, got ${got ?? "a message without content"}`,
    Code.InvalidArgument,
  );
}

function toOptions({ atomic, maxBytes, maxEntries, preserveOwner, sha256 }: WriteArchiveMetadata): WriteArchiveOptions {
  if (sha256 !== "" && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new PicodError("INVALID_ARGUMENT", "invalid sha256: expected 64 hexadecimal digits");
  }
  return { atomic, maxBytes, maxEntries, preserveOwner, sha256: sha256 === "" ? undefined : sha256.toLowerCase() };
}

function toUnreadableEntry({ path, error }: Unreadable) {
  if (error instanceof PicodError) return { path, reason: error.reason, message: error.message };
  const reason = errnoName(error) ?? "";
  return { path, reason, message: error instanceof Error && reason !== "" ? describeErrno(error) : "it cannot be read" };
}
