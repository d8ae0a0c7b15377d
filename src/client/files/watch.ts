import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { FileChange, FilesystemService, UnreadableEntry, WatchOptionsSchema } from "../../gen/picod/v1/filesystem_pb.js";
import { afterFailure } from "../insistently.js";
import { reasonOf } from "../reason-of.js";
import { Retries } from "../retries.js";
import type { Connection } from "../transport.js";
import { KEEPALIVE_SECONDS, unlessSilent } from "../unless-silent.js";

export type WatchOptions = Omit<MessageInitShape<typeof WatchOptionsSchema>, "$typeName"> & {
  readonly user?: string;
  readonly signal?: AbortSignal;
};

export type WatchEvent =
  /** First: what changes from now on is reported. */
  | { readonly ready: true }
  | { readonly change: FileChange }
  /** Changes before this may be missing: list the directory to know what is there. */
  | { readonly lost: true }
  /** A directory below can no longer, or not, be watched. */
  | { readonly unwatched: UnreadableEntry };

/** Watches again after a broken connection, with a restarted daemon, and when the daemon could not wait for the reader. */
export async function* watch(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  path: string,
  { user = "", signal, ...options }: WatchOptions,
): AsyncGenerator<WatchEvent, void, void> {
  const request = { path, user, options, keepaliveInterval: { seconds: BigInt(KEEPALIVE_SECONDS) } };
  const ended = signal === undefined ? connection.closed : AbortSignal.any([connection.closed, signal]);
  let isReady = false;
  for (const retries = new Retries(ended); ; ) {
    const leave = new AbortController();
    try {
      signal?.throwIfAborted();
      const responses = filesystem.watchDirectory(request, { signal: AbortSignal.any([ended, leave.signal]) });
      for await (const { event } of unlessSilent(responses, leave)) {
        retries.succeeded();
        if (event.case === "ready") {
          yield isReady ? { lost: true } : { ready: true };
          isReady = true;
        }
        if (event.case === "overflow") yield { lost: true };
        if (event.case === "change") yield { change: event.value };
        if (event.case === "unwatched") yield { unwatched: event.value };
        if (event.case === "ended") return;
      }
      throw new ConnectError("the watch ended without a word", Code.Unavailable);
    } catch (error) {
      if (reasonOf(error) !== "WATCHER_TOO_SLOW") await afterFailure(retries, error, signal);
    } finally {
      leave.abort();
    }
  }
}
