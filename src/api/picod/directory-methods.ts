import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { listDirectory } from "../../filesystem/list-directory.js";
import { makeDirectory } from "../../filesystem/make-directory.js";
import { remove } from "../../filesystem/remove.js";
import { setAttributes } from "../../filesystem/set-attributes.js";
import type {
  FilesystemService,
  ListDirectoryRequest,
  MakeDirectoryRequest,
  RemoveRequest,
  SetAttributesRequest,
} from "../../gen/picod/v1/filesystem_pb.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";
import { toMode } from "./write-options.js";

const NS_PER_SECOND = 1_000_000_000n;

/** The part of picod.v1.FilesystemService that is about directories, and about names and attributes of whatever is in them. */
export function createDirectoryMethods(
  sandbox: Sandbox,
): Pick<ServiceImpl<typeof FilesystemService>, "listDirectory" | "makeDirectory" | "remove" | "setAttributes"> {
  return {
    async *listDirectory(request: ListDirectoryRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      for await (const { entries, unreadable } of listDirectory(access, path, request.depth ?? 1, context.signal)) {
        yield { entries: entries.map(toEntryInfo), unreadable: [...unreadable] };
      }
    },

    makeDirectory(request: MakeDirectoryRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      const { mustNotExist } = request;
      const mode = toMode(request.mode);
      const { entry, created } = makeDirectory(access, path, { mode, mustNotExist });
      return { entry: toEntryInfo(entry), created };
    },

    async remove(request: RemoveRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      return { removed: BigInt(await remove(access, path, request, context.signal)) };
    },

    setAttributes(request: SetAttributesRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      const { owner, group, modifiedTime, accessedTime, setXattrs, removeXattrs, noFollowSymlinks } = request;
      const changes = {
        mode: toMode(request.mode),
        owner: owner === "" ? undefined : owner,
        group: group === "" ? undefined : group,
        modifiedTimeNs: toNanoseconds(modifiedTime),
        accessedTimeNs: toNanoseconds(accessedTime),
        setXattrs,
        removeXattrs,
      };
      return { entry: toEntryInfo(setAttributes(access, path, changes, noFollowSymlinks)) };
    },
  };
}

function toNanoseconds(time: { readonly seconds: bigint; readonly nanos: number } | undefined): bigint | undefined {
  if (time === undefined) return undefined;
  if (time.nanos < 0 || time.nanos >= Number(NS_PER_SECOND)) {
    throw new PicodError("INVALID_ARGUMENT", `invalid time: ${time.nanos} nanoseconds are not from 0 to 999,999,999`);
  }
  return time.seconds * NS_PER_SECOND + BigInt(time.nanos);
}
