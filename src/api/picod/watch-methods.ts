import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { type WatchDirectoryEvent, watchDirectory } from "../../filesystem/watch-directory.js";
import type { FileChange, FileChangeKind, WatchOptions } from "../../filesystem/watching/file-change.js";
import {
  FileChangeKind as FileChangeKindMessage,
  type FileChangeSchema,
  type FilesystemService,
  type GetChangesRequest,
  type WatchDirectoryRequest,
  type WatchDirectoryResponseSchema,
  type WatchOptions as WatchOptionsMessage,
} from "../../gen/picod/v1/filesystem_pb.js";
import type { Readiness } from "../../readiness.js";
import { resolveFile } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toKeepaliveMs } from "./follow-messages.js";

const MAX_DEBOUNCE_MS = 10_000;
const MAX_WAIT_MS = 30_000;

const MESSAGE_OF_KIND: Readonly<Record<FileChangeKind, FileChangeKindMessage>> = {
  created: FileChangeKindMessage.CREATED,
  modified: FileChangeKindMessage.MODIFIED,
  attributes: FileChangeKindMessage.ATTRIBUTES,
  removed: FileChangeKindMessage.REMOVED,
  moved: FileChangeKindMessage.MOVED,
};
const KINDS = Object.keys(MESSAGE_OF_KIND) as FileChangeKind[];

/** The part of picod.v1.FilesystemService that tells what changes. */
export function createWatchMethods(
  sandbox: Sandbox,
  readiness: Readiness,
): Pick<ServiceImpl<typeof FilesystemService>, "watchDirectory" | "getChanges"> {
  return {
    async *watchDirectory(request: WatchDirectoryRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      const keepaliveMs = toKeepaliveMs(request.keepaliveInterval);
      using ending = readiness.whileReady(context.signal);
      const options = toWatchOptions(request.options);
      for await (const event of watchDirectory(sandbox.watches, access, path, options, keepaliveMs, ending.signal)) {
        yield { event: toEvent(event) };
      }
    },

    async getChanges(request: GetChangesRequest, context: HandlerContext) {
      const [access, path] = resolveFile(sandbox, request, callerOf(context));
      const options = toWatchOptions(request.options);
      const waitMs = toMs("wait", request.wait, MAX_WAIT_MS);
      using ending = readiness.whileReady(context.signal);
      const { cursor } = request;
      const { changes, ...rest } = await sandbox.histories.getChanges({ access, path, options, cursor, waitMs }, ending.signal);
      return { changes: changes.map(toFileChange), ...rest };
    },
  };
}

type EventMessage = MessageInitShape<typeof WatchDirectoryResponseSchema>["event"];

function toEvent(event: WatchDirectoryEvent): NonNullable<EventMessage> {
  switch (event.kind) {
    case "ready":
      return { case: "ready", value: { directories: event.directories } };
    case "change":
      return { case: "change", value: toFileChange(event.change) };
    case "unwatched":
      return { case: "unwatched", value: { path: event.path, reason: event.reason, message: event.message } };
    case "ended":
      return { case: "ended", value: { message: event.message } };
    default:
      return { case: event.kind, value: {} };
  }
}

function toFileChange({ kind, path, fromPath = "", isDirectory, timeMs }: FileChange): MessageInitShape<typeof FileChangeSchema> {
  const time = { seconds: BigInt(Math.floor(timeMs / 1000)), nanos: (timeMs % 1000) * 1_000_000 };
  return { kind: MESSAGE_OF_KIND[kind], path, fromPath, isDirectory, time };
}

/** @throws INVALID_ARGUMENT naming the field. */
function toWatchOptions(options: WatchOptionsMessage | undefined): WatchOptions {
  if (options === undefined) return {};
  const { recursive, include, exclude } = options;
  const kinds = options.kinds.map((message) => {
    const kind = KINDS.find((name) => MESSAGE_OF_KIND[name] === message);
    if (kind === undefined) throw new PicodError("INVALID_ARGUMENT", `invalid kinds: ${message}`);
    return kind;
  });
  return { recursive, include, exclude, debounceMs: toMs("debounce", options.debounce, MAX_DEBOUNCE_MS), kinds };
}

/** Absent: 0. @throws INVALID_ARGUMENT naming the field. */
function toMs(field: string, duration: Duration | undefined, maxMs: number): number {
  if (duration === undefined) return 0;
  const ms = Number(duration.seconds) * 1000 + duration.nanos / 1e6;
  if (ms < 0 || ms > maxMs)
    throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: ${ms / 1000} s: at most ${maxMs / 1000} s`);
  return ms;
}
