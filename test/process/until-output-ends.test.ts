import { describe, expect, it } from "vitest";
import { follow } from "../../src/process/follow.js";
import type { ProcessRecord } from "../../src/process/process-record.js";
import { type StartOptions, start } from "../../src/process/start.js";
import { stop } from "../../src/process/stop.js";
import { writeInput } from "../../src/process/write-input.js";
import { UNTRACED } from "../../src/trace.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { createRunner, type Runner } from "../helpers/run-command.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

function begin({ sandbox }: Runner, command: string, options: Partial<StartOptions> = {}): ProcessRecord {
  const names = { id: "", tag: "", label: "", sessionId: "" };
  const from = { command, argv: [], cwd: "/", user: "", env: {}, size: undefined, stdin: true, login: false, timeoutMs: 0 };
  const call = { limits: {}, trace: UNTRACED, capability: undefined };
  return start(sandbox, { ...names, ...from, ...call, untilOutputEnds: true, ...options });
}

const isReaped = ({ process }: ProcessRecord) => process?.leaderIsReaped() === true;

/** Everything that a follower is given of standard output, from its beginning. */
async function outputOf(record: ProcessRecord): Promise<string> {
  let output = "";
  const events = follow(record, { from: {}, backpressure: true, keepaliveMs: 60_000 }, new AbortController().signal);
  for await (const event of events) if (event.kind === "output") output += Buffer.from(event.chunk).toString();
  return output;
}

describe("a process that ends with its output", () => {
  it("has not ended while a child in the background may print", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    const record = begin(runner, `{ while [ ! -e ${directory.path}/go ]; do sleep 0.05; done; echo late; } & echo early; exit 3`);
    const output = outputOf(record);
    await eventually("the leader has ended", () => isReaped(record));
    // Longer than the output of others is waited for.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(record.end).toBeUndefined();
    begin(runner, `touch ${directory.path}/go`);
    expect(await output).toBe("early\nlate\n");
    expect(record.end).toMatchObject({ reason: "exited", exitCode: 3 });
  });

  it("loses nothing of what a child in the background prints to a slow follower", async () => {
    await using runner = createRunner();
    const record = begin(runner, "(sleep 0.3; head -c 5000000 /dev/zero) & exit 0");
    let bytes = 0;
    const events = follow(record, { from: {}, backpressure: true, keepaliveMs: 60_000 }, new AbortController().signal);
    for await (const event of events) {
      if (event.kind !== "output") continue;
      bytes += event.chunk.length;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(bytes).toBe(5_000_000);
  });

  it("ends with its leader when it is told to, with its exit code", async () => {
    await using runner = createRunner();
    const record = begin(runner, "sleep 1000.25 & exit 3");
    await eventually("the leader has ended", () => isReaped(record));
    record.process?.endWithLeader();
    expect(await record.process?.ended).toMatchObject({ reason: "exited", exitCode: 3 });
    await stop(record.process, "none");
    expect(processesNamed("1000.25")).toEqual([]);
  });

  it("is ended with what its leader left behind, by stopping it and by its time limit", async () => {
    await using runner = createRunner();
    const left = (name: string) => `sh -c 'trap "" TERM; sleep 1000; : ${name}' & exit 3`;
    const stopped = begin(runner, left("left-stopped"));
    const late = begin(runner, left("left-late"), { timeoutMs: 500, timeoutGrace: "none" });
    await eventually("the leaders have ended", () => isReaped(stopped) && isReaped(late));
    await stop(stopped.process, "none");
    expect(processesNamed("left-stopped")).toEqual([]);
    expect(stopped.end).toMatchObject({ reason: "exited", exitCode: 3 });
    await late.process?.ended;
    await eventually("they are gone", () => processesNamed("left-late").length === 0);
  });

  it("can be killed without a word before", async () => {
    await using runner = createRunner();
    const record = begin(runner, "trap 'echo caught; exit 0' TERM; echo ready; while :; do sleep 0.1; done");
    await eventually("it is ready", () => record.keptBytes > 0);
    expect(await stop(record.process, "none")).toMatchObject({ survivingProcesses: 0 });
    expect(record.end).toMatchObject({ reason: "cancelled", signal: "SIGKILL" });
    expect(await outputOf(record)).toBe("ready\n");
  });
});

describe("writeInput", () => {
  it("resolves when the pipe has taken it, and tells when nobody reads", async () => {
    await using runner = createRunner();
    const { signal } = new AbortController();
    const record = begin(runner, "head -c 1000000 | wc -c; exec <&-; echo closed; exec sleep 1000");
    await writeInput(record, undefined, Buffer.alloc(1_000_000), signal);
    await eventually("it reads no more", () => (record.logs.get("stdout")?.end ?? 0) >= "1000000\nclosed\n".length);
    await expect(writeInput(record, undefined, Buffer.from("more"), signal)).rejects.toMatchObject({ code: "EPIPE" });
    await stop(record.process, "none");
  });
});

describe("a follower that is let go", () => {
  it("holds nobody back from then on", async () => {
    await using runner = createRunner();
    const record = begin(runner, "head -c 3000000 /dev/zero");
    const letGo = new AbortController();
    const options = { from: {}, backpressure: true, letGo: letGo.signal, keepaliveMs: 60_000 };
    const events = follow(record, options, new AbortController().signal);
    await events.next();
    await eventually("it waits", () => record.keptBytes > 500_000);
    expect(record.end).toBeUndefined();
    letGo.abort();
    await eventually("it has ended", () => record.end !== undefined);
    const kinds = new Set<string>();
    for await (const event of events) kinds.add(event.kind);
    expect([...kinds]).toEqual(["trimmed", "output", "ended"]);
  });
});
