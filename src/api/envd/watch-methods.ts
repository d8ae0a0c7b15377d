import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { EventWatch, type WatchedEvent } from "../../filesystem/watching/event-watch.js";
import { isNetworkMount } from "../../filesystem/watching/network-mount.js";
import {
  type CreateWatcherRequest,
  EventType,
  type Filesystem,
  type FilesystemEventSchema,
  type GetWatcherEventsRequest,
  type RemoveWatcherRequest,
  type WatchDirRequest,
} from "../../gen/envd/filesystem/filesystem_pb.js";
import type { Readiness } from "../../readiness.js";
import type { Sandbox } from "../../sandbox.js";
import type { EnvdAccess } from "./access.js";
import { assertDirectory, type Resolve } from "./directory-methods.js";
import { tryDescribe } from "./entry-info.js";
import { keepaliveMs } from "./following.js";
import { type PolledWatch, PolledWatches } from "./polled-watches.js";
import { toEnvdError, withCodes } from "./rpc-errors.js";

const TYPE_OF_KIND: Readonly<Record<WatchedEvent["kind"], EventType>> = {
  created: EventType.CREATE,
  modified: EventType.WRITE,
  attributes: EventType.CHMOD,
  removed: EventType.REMOVE,
  renamed: EventType.RENAME,
};
const OF_WHAT_EXISTS: readonly WatchedEvent["kind"][] = ["created", "modified", "attributes"];

type WatchMethods = "watchDir" | "createWatcher" | "getWatcherEvents" | "removeWatcher";

/** The part of filesystem.Filesystem that tells what happens. */
export function createWatchMethods(
  sandbox: Sandbox,
  resolve: Resolve,
  readiness: Readiness,
): Pick<ServiceImpl<typeof Filesystem>, WatchMethods> {
  const polled = new PolledWatches();

  function accessOf(context: HandlerContext): EnvdAccess {
    return resolve("/", context)[0];
  }

  function prepare(request: WatchDirRequest | CreateWatcherRequest, context: HandlerContext): PolledWatch {
    const [access, path] = resolve(request.path, context);
    assertDirectory(access, path);
    if (!request.allowNetworkMounts && isNetworkMount(access, path))
      throw new ConnectError(`cannot watch ${path}: it is on a network mount`, Code.InvalidArgument);
    const watch = new EventWatch(sandbox.watches, access, path, request.recursive);
    return { watch, access, path, includeEntry: request.includeEntry };
  }

  async function* follow(request: WatchDirRequest, context: HandlerContext) {
    using ending = readiness.whileReady(context.signal);
    const intervalMs = keepaliveMs(context.requestHeader);
    const prepared = prepare(request, context);
    const { watch } = prepared;
    try {
      await watch.open(ending.signal);
      yield { event: { case: "start" as const, value: {} } };
      for (;;) {
        for (const event of watch.take()) yield { event: { case: "filesystem" as const, value: toEvent(prepared, event) } };
        const isNews = await watch.news(intervalMs, ending.signal);
        ending.signal.throwIfAborted();
        if (!isNews) yield { event: { case: "keepalive" as const, value: {} } };
      }
    } finally {
      watch.close();
    }
  }

  return {
    async *watchDir(request: WatchDirRequest, context: HandlerContext) {
      try {
        yield* follow(request, context);
      } catch (error) {
        throw toEnvdError(error);
      }
    },

    createWatcher: (request: CreateWatcherRequest, context: HandlerContext) =>
      withCodes({}, async () => {
        const prepared = prepare(request, context);
        await prepared.watch.open(context.signal);
        try {
          return { watcherId: polled.add(prepared) };
        } catch (error) {
          prepared.watch.close();
          throw error;
        }
      }),

    getWatcherEvents: ({ watcherId }: GetWatcherEventsRequest, context: HandlerContext) =>
      withCodes({}, async () => {
        const found = polled.find(watcherId, accessOf(context));
        await found.watch.settled();
        return { events: found.watch.take().map((event) => toEvent(found, event)) };
      }),

    removeWatcher({ watcherId }: RemoveWatcherRequest, context: HandlerContext) {
      polled.remove(watcherId, accessOf(context));
      return {};
    },
  };
}

/** Described as it is now: nothing when it is gone by then. */
function toEvent({ access, path, includeEntry }: PolledWatch, { kind, name }: WatchedEvent) {
  const event: MessageInitShape<typeof FilesystemEventSchema> = { name, type: TYPE_OF_KIND[kind] };
  if (!includeEntry || !OF_WHAT_EXISTS.includes(kind)) return event;
  const entry = tryDescribe(access, name === "." ? path : `${path.replace(/\/$/, "")}/${name}`);
  return entry === undefined ? event : { ...event, entry };
}
