import { posix } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { listDirectory } from "../../filesystem/list-directory.js";
import { makeDirectory } from "../../filesystem/make-directory.js";
import { stat } from "../../filesystem/stat.js";
import type { EntryInfoSchema, Filesystem, ListDirRequest, MakeDirRequest } from "../../gen/envd/filesystem/filesystem_pb.js";
import { errnoName } from "../../os/system-error.js";
import type { Sandbox } from "../../sandbox.js";
import type { EnvdAccess } from "./access.js";
import { describe, tryDescribe } from "./entry-info.js";
import { withCodes } from "./rpc-errors.js";

/** So many entries are described while others wait. */
const ENTRIES_IN_TURN = 64;
const LISTING = { ELOOP: Code.FailedPrecondition };

/** Which path a request means, and for whom. */
export type Resolve = (path: string, context: HandlerContext) => [access: EnvdAccess, path: string];

/** The part of filesystem.Filesystem that is about directories. */
export function createDirectoryMethods(
  { watches }: Sandbox,
  resolve: Resolve,
): Pick<ServiceImpl<typeof Filesystem>, "listDir" | "makeDir"> {
  return {
    listDir: (request: ListDirRequest, context: HandlerContext) =>
      withCodes(LISTING, async () => {
        const [access, asked] = resolve(request.path, context);
        const path = cleaned(asked);
        assertDirectory(access, path);
        return { entries: await list(access, path, Math.max(1, request.depth), context.signal) };
      }),

    makeDir: (request: MakeDirRequest, context: HandlerContext) =>
      withCodes({ ENOENT: Code.Internal }, async () => {
        const [access, path] = resolve(request.path, context);
        const kind = kindOfExisting(access, path);
        if (kind === "directory") throw new ConnectError(`directory already exists: ${path}`, Code.AlreadyExists);
        if (kind !== undefined)
          throw new ConnectError(`path already exists but it is not a directory: ${path}`, Code.InvalidArgument);
        makeDirectory(access, path);
        const entry = describe(access, path);
        // Whoever watches above it watches it too before anything can be put into it.
        await watches.settled();
        return { entry };
      }),
  };
}

/** Without dots, doubled slashes and a slash at the end. */
function cleaned(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, "");
}

/** @throws invalid_argument. */
export function assertDirectory(access: EnvdAccess, path: string): void {
  if (stat(access, path, true).kind === "directory") return;
  throw new ConnectError(`path is not a directory: ${path}`, Code.InvalidArgument);
}

/** Undefined when there is nothing, also behind a link. @throws errno of open(2). */
export function kindOfExisting(access: EnvdAccess, path: string) {
  try {
    return stat(access, path, true).kind;
  } catch (error) {
    if (errnoName(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function list(access: EnvdAccess, path: string, depth: number, abortSignal: AbortSignal) {
  const described: MessageInitShape<typeof EntryInfoSchema>[] = [];
  let count = 0;
  for await (const { entries } of listDirectory(access, path, depth, abortSignal)) {
    for (const entry of entries) {
      if (++count % ENTRIES_IN_TURN === 0) await nextTurn();
      const info = tryDescribe(access, entry.path);
      if (info !== undefined) described.push(info);
    }
  }
  return described;
}
