import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { move } from "../../filesystem/move.js";
import { remove } from "../../filesystem/remove.js";
import type { Filesystem, MoveRequest, RemoveRequest, StatRequest } from "../../gen/envd/filesystem/filesystem_pb.js";
import type { Readiness } from "../../readiness.js";
import type { Sandbox } from "../../sandbox.js";
import { accessFor } from "./access.js";
import { actingUser } from "./acting-user.js";
import { createDirectoryMethods, kindOfExisting, type Resolve } from "./directory-methods.js";
import { describe } from "./entry-info.js";
import { resolveEnvdPath } from "./resolve-path.js";
import { withCodes } from "./rpc-errors.js";
import type { EnvdState } from "./state.js";
import { createWatchMethods } from "./watch-methods.js";

/** filesystem.Filesystem of E2B's envd: translates and delegates. */
export function createEnvdFilesystemService(
  sandbox: Sandbox,
  state: EnvdState,
  readiness: Readiness,
): ServiceImpl<typeof Filesystem> {
  const resolve: Resolve = (path, context) => {
    const user = actingUser(sandbox, state, context.requestHeader);
    return [accessFor(sandbox, state, user, callerOf(context)), resolveEnvdPath(path, user, state)];
  };
  return {
    ...createDirectoryMethods(sandbox, resolve),
    ...createWatchMethods(sandbox, resolve, readiness),

    stat: (request: StatRequest, context: HandlerContext) =>
      withCodes({}, () => ({ entry: describe(...resolve(request.path, context)) })),

    move: (request: MoveRequest, context: HandlerContext) =>
      withCodes({ INVALID_ARGUMENT: Code.Internal }, async () => {
        const [access, source] = resolve(request.source, context);
        const [, destination] = resolve(request.destination, context);
        if (kindOfExisting(access, destination) === "directory")
          throw new ConnectError(`cannot move ${source} to ${destination}: there is a directory`, Code.Internal);
        await move(access, source, destination, "replace", context.signal);
        const entry = describe(access, destination);
        // As with a directory that is made.
        await sandbox.watches.settled();
        return { entry };
      }),

    remove: (request: RemoveRequest, context: HandlerContext) =>
      withCodes({ INVALID_PATH: Code.Internal }, async () => {
        const [access, path] = resolve(request.path, context);
        await remove(access, path, { recursive: true, missingOk: true }, context.signal);
        return {};
      }),
  };
}
