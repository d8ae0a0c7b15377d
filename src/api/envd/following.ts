import { Code, ConnectError } from "@connectrpc/connect";
import type { StreamName } from "../../process/managed-process.js";
import type { ProcessRecord } from "../../process/process-record.js";

const DEFAULT_KEEPALIVE_S = 90;
const MAX_TIMER_S = Math.floor((2 ** 31 - 1) / 1000);
/** Asks Connect for output from before: `all` that is kept, or from an offset in bytes on (`stdout,stderr` where there are two). */
const REPLAY_HEADER = "x-picod-replay";

/** From `Keepalive-Ping-Interval`, in whole seconds. What is none, and nothing, is 90. */
export function keepaliveMs(header: Headers): number {
  const text = header.get("keepalive-ping-interval") ?? "";
  const seconds = /^\d+$/.test(text) ? Number(text) : 0;
  return Math.min(seconds === 0 ? DEFAULT_KEEPALIVE_S : seconds, MAX_TIMER_S) * 1000;
}

/** Where a follower begins: with what is new, unless a header asks for more. @throws invalid_argument. */
export function replayFrom(header: Headers, record: ProcessRecord): Partial<Record<StreamName, number>> | "end" {
  const asked = header.get(REPLAY_HEADER);
  if (asked === null) return "end";
  const [, first = "0", second = "0"] = /^(?:all|(\d{1,15})(?: *, *(\d{1,15}))?)$/.exec(asked) ?? [undefined, ""];
  if (first === "") {
    const why = "expected all, an offset in bytes, or two with a comma";
    throw new ConnectError(`invalid ${REPLAY_HEADER}: ${JSON.stringify(asked.slice(0, 80))}: ${why}`, Code.InvalidArgument);
  }
  return record.size === undefined ? { stdout: Number(first), stderr: Number(second) } : { pty: Number(first) };
}
