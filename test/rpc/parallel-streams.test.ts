import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Process } from "../../src/gen/envd/process/process_pb.js";
import { ProcessService } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { leavesNothing } from "./support/leaves-nothing.js";

const STREAMS = 1_000;
const OPTIONS = { args: ["--max-processes", String(STREAMS)] };
/** Those that begin, and that answer, at the same time. */
const AT_ONCE = 100;

/** One process behind one stream, which echoes a line. */
interface Stream {
  readonly send: (text: string) => Promise<unknown>;
  /** What it has printed, and how it ended. */
  readonly rest: () => Promise<string>;
}

/** Starts all of them, and only then asks each for an answer. */
async function allAnswer(start: () => Promise<Stream>): Promise<void> {
  const streams: Stream[] = [];
  while (streams.length < STREAMS) streams.push(...(await Promise.all(Array.from({ length: AT_ONCE }, start))));
  const waiting = [...streams.entries()];
  while (waiting.length > 0) {
    await Promise.all(
      waiting.splice(0, AT_ONCE).map(async ([number, { send, rest }]) => {
        await send(`number ${number}\n`);
        expect(await rest()).toBe(`number ${number}\nexit code 0`);
      }),
    );
  }
}

async function next<T>(events: AsyncIterator<T>): Promise<T> {
  const { done, value } = await events.next();
  if (done) throw new Error("the stream ended too early");
  return value;
}

const ECHO = ["/bin/sh", "-c", 'read -r line; echo "$line"'];

describe("a thousand streams at once begin, answer, end and leave nothing", () => {
  it("of agent-sandbox's contract, on one connection of gRPC", { timeout: 120_000 }, async () => {
    await using daemon = await startDaemon(OPTIONS);
    await leavesNothing(daemon, async () => {
      await using streams = connectTo(daemon.url);
      await using others = connectTo(daemon.url);
      const { writeStdin } = createClient(ProcessService, others.transport);
      await allAnswer(async () => {
        const events = createClient(ProcessService, streams.transport)
          .start({ config: { command: ECHO } })
          [Symbol.asyncIterator]();
        const { event: init } = await next(events);
        if (init.case !== "init") throw new Error(`expected init, got ${init.case}`);
        const { processId } = init.value;
        return {
          send: (text) => writeStdin({ processId, payload: { case: "input", value: Buffer.from(text) } }),
          async rest() {
            let printed = "";
            for (;;) {
              const { event } = await next(events);
              if (event.case === "exit") return `${printed}exit code ${event.value.exitCode}`;
              if (event.case === "stdout") printed += Buffer.from(event.value).toString();
            }
          },
        };
      });
    });
  });

  it("of E2B's contract, on a connection each", { timeout: 120_000 }, async () => {
    await using daemon = await startDaemon(OPTIONS);
    await using clients = connectTo(daemon.url, { protocol: "Connect over HTTP/1.1" });
    const envd = createClient(Process, clients.transport);
    const [cmd = "", ...args] = ECHO;
    await leavesNothing(daemon, () =>
      allAnswer(async () => {
        const events = envd.start({ process: { cmd, args } })[Symbol.asyncIterator]();
        const started = (await next(events)).event?.event;
        if (started?.case !== "start") throw new Error(`expected start, got ${started?.case}`);
        const process = { selector: { case: "pid" as const, value: started.value.pid } };
        return {
          send: (text) => envd.sendInput({ process, input: { input: { case: "stdin", value: Buffer.from(text) } } }),
          async rest() {
            let printed = "";
            for (;;) {
              const event = (await next(events)).event?.event;
              if (event?.case === "end") return `${printed}exit code ${event.value.exitCode}`;
              if (event?.case === "data") printed += Buffer.from(event.value.output.value ?? []).toString();
            }
          },
        };
      }),
    );
  });
});
