import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { ProcessEnded, ProcessEvent, StartRequestSchema } from "../../../src/gen/picod/v1/process_pb.js";
import type { Clients } from "../../helpers/clients.js";

type StartRequest = Omit<MessageInitShape<typeof StartRequestSchema>, "$typeName">;
type Events = AsyncIterable<{ event?: ProcessEvent | undefined }>;

export const selectId = (id: string) => ({ process: { selector: { case: "id" as const, value: id } } });
export const selectTag = (tag: string) => ({ process: { selector: { case: "tag" as const, value: tag } } });

/** Starts a process, leaves it running and follows it no more. Returns its id. */
export async function startAndLeave({ process }: Clients, request: StartRequest): Promise<string> {
  // Leaving the loop alone does not cancel the call.
  const leave = new AbortController();
  for await (const { event } of process.start(request, { signal: leave.signal })) {
    leave.abort();
    if (event?.event.case === "started") return event.event.value.process?.id ?? "";
  }
  throw new Error("it has not started");
}

export interface Followed {
  readonly text: string;
  readonly trimmed: readonly { readonly from: bigint; readonly to: bigint }[];
  readonly ended: ProcessEnded;
}

/** Follows to the end and checks that every byte arrives in order, once, or is reported as trimmed. */
export async function followToEnd(events: Events): Promise<Followed> {
  const chunks: Uint8Array[] = [];
  const trimmed: { from: bigint; to: bigint }[] = [];
  const offsets = new Map<string | number, bigint>();
  const names = ["", "stdout", "stderr", "pty"];
  for await (const { event } of events) {
    if (event?.event.case === "ended") return { text: Buffer.concat(chunks).toString(), trimmed, ended: event.event.value };
    if (event?.event.case === "trimmed") {
      const { stream, from, to } = event.event.value;
      const name = names[stream] ?? "";
      if ((offsets.get(name) ?? from) !== from || to <= from) throw new Error(`trimmed from ${from} to ${to}`);
      trimmed.push({ from, to });
      offsets.set(name, to);
    }
    if (event?.event.case !== "output") continue;
    const { output, offset } = event.event.value;
    const name = String(output.case);
    if ((offsets.get(name) ?? offset) !== offset) throw new Error(`offset ${offset}, expected ${offsets.get(name)}`);
    offsets.set(name, offset + BigInt(output.value?.length ?? 0));
    chunks.push(output.value ?? Buffer.alloc(0));
  }
  throw new Error("the stream ended without the end of the process");
}

export async function errorOf(promise: Promise<unknown>): Promise<ConnectError> {
  return promise.then(
    () => {
      throw new Error("expected an error");
    },
    (error: unknown) => ConnectError.from(error),
  );
}

export const PTY = { cols: 80, rows: 24 };

/** Types each answer when what it waits for is shown. Returns all that was shown. */
export async function converse(
  { process }: Clients,
  request: { command?: string; env?: Record<string, string>; user?: string; cwd?: string },
  steps: readonly (readonly [shown: string, typed: string])[],
): Promise<string> {
  let id = "";
  let all = "";
  let rest = "";
  let step = 0;
  for await (const { event } of process.start({ pty: PTY, ...request })) {
    if (event?.event.case === "started") id = event.event.value.process?.id ?? "";
    if (event?.event.case !== "output") continue;
    const text = Buffer.from(event.event.value.output.value ?? []).toString("latin1");
    all += text;
    rest += text;
    for (let next = steps[step]; next !== undefined && rest.includes(next[0]); next = steps[step]) {
      rest = rest.slice(rest.indexOf(next[0]) + next[0].length);
      step++;
      await process.sendInput({ ...selectId(id), data: Buffer.from(next[1], "latin1") });
    }
  }
  if (step < steps.length) throw new Error(`${JSON.stringify(steps[step]?.[0])} was not shown in ${JSON.stringify(all)}`);
  return all;
}
