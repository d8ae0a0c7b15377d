import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { copy } from "../../filesystem/copy.js";
import { move } from "../../filesystem/move.js";
import { type CopyRequest, type FilesystemService, MoveMode, type MoveRequest } from "../../gen/picod/v1/filesystem_pb.js";
import { resolveAccess, resolveFilePath } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";

const RENAME_MODES = {
  [MoveMode.UNSPECIFIED]: "replace",
  [MoveMode.NO_REPLACE]: "free",
  [MoveMode.EXCHANGE]: "exchange",
} as const;

/** The part of picod.v1.FilesystemService that moves and copies. */
export function createMoveMethods(sandbox: Sandbox): Pick<ServiceImpl<typeof FilesystemService>, "move" | "copy"> {
  return {
    async move(request: MoveRequest, context: HandlerContext) {
      const mode = RENAME_MODES[request.mode];
      if (mode === undefined) throw new PicodError("INVALID_ARGUMENT", `invalid mode: ${request.mode}`);
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      const source = resolveFilePath(sandbox, access, request.source);
      const destination = resolveFilePath(sandbox, access, request.destination);
      return { entry: toEntryInfo(await move(access, source, destination, mode, context.signal)) };
    },

    async copy(request: CopyRequest, context: HandlerContext) {
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      const source = resolveFilePath(sandbox, access, request.source);
      const destination = resolveFilePath(sandbox, access, request.destination);
      const { entry, entries, bytes } = await copy(access, source, destination, request, context.signal);
      return { entry: toEntryInfo(entry), entries, bytes };
    },
  };
}
