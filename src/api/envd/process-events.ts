import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ProcessEventSchema } from "../../gen/envd/process/process_pb.js";
import { type FollowEvent, follow } from "../../process/follow.js";
import type { StreamName } from "../../process/managed-process.js";
import { keepaliveMs } from "./following.js";
import { KEEPALIVE, toData, toEnd, toStart } from "./messages.js";
import type { EnvdProcess } from "./processes.js";
import { Subscriber } from "./subscriber.js";

type Messages = AsyncGenerator<{ event: MessageInitShape<typeof ProcessEventSchema> }>;

/** What happens to a process from a place in its output on. @throws the call's deadline; data_loss for a client that stalled too long. */
export async function* processEvents(
  { pid, record }: EnvdProcess,
  from: Partial<Record<StreamName, number>> | "end",
  { requestHeader, signal }: HandlerContext,
): Messages {
  const subscriber = new Subscriber(record);
  try {
    const options = { from, backpressure: true, letGo: subscriber.letGo, keepaliveMs: keepaliveMs(requestHeader) };
    for await (const event of follow(record, options, signal)) {
      // What a replay asks for may be kept no longer; one that was let go has been promised it.
      if (event.kind === "trimmed" && subscriber.letGo.aborted)
        throw new ConnectError("output was lost: too slow", Code.DataLoss);
      for (const message of toMessages(event, pid)) {
        subscriber.setWaiting(true);
        yield { event: message };
        subscriber.setWaiting(false);
      }
    }
  } finally {
    subscriber.close();
  }
}

function toMessages(event: FollowEvent, pid: number): Iterable<MessageInitShape<typeof ProcessEventSchema>> {
  if (event.kind === "started") return [toStart(pid)];
  if (event.kind === "output") return toData(event.stream, event.chunk);
  if (event.kind === "ended") return [toEnd(event.end)];
  return event.kind === "keepalive" ? [KEEPALIVE] : [];
}
