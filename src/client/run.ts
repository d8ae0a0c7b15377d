import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { ExecuteRequestSchema, ExecuteResponse, ProcessService } from "../gen/picod/v1/process_pb.js";
import { Once } from "./once.js";
import type { Connection } from "./transport.js";

type ExecuteRequest = Omit<MessageInitShape<typeof ExecuteRequestSchema>, "$typeName">;

/** So long the word that a command is not waited for may take: once the daemon has it, the rest goes on by itself. */
const FAREWELL_MS = 1_000;

/** Runs a command once, and fetches its answer through broken connections. */
export async function run(
  client: Client<typeof ProcessService>,
  connection: Connection,
  request: ExecuteRequest,
  signal: AbortSignal | undefined,
): Promise<ExecuteResponse> {
  const id = request.id || randomUUID();
  const leave = new AbortController();
  const onAbort = () => leave.abort(signal?.reason);
  const onClose = () => leave.abort();
  signal?.addEventListener("abort", onAbort);
  connection.closed.addEventListener("abort", onClose);
  if (signal?.aborted) onAbort();
  if (connection.closed.aborted) onClose();
  try {
    for (const once = new Once(connection); ; ) {
      try {
        return await client.execute({ ...request, id }, { signal: leave.signal, headers: await once.headers() });
      } catch (error) {
        if (leave.signal.aborted) throw error;
        await once.after(error);
      }
    }
  } catch (error) {
    // With an id it runs on when the call ends. One that is the caller's own may be asked for again.
    if (!request.id) connection.beforeClosing(end(client, id));
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    connection.closed.removeEventListener("abort", onClose);
  }
}

function end(client: Client<typeof ProcessService>, id: string): Promise<unknown> {
  const process = { selector: { case: "id" as const, value: id } };
  return client.stopProcess({ process }, { timeoutMs: FAREWELL_MS }).catch(() => undefined);
}
