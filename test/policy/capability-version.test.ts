import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { Process as Envd } from "../../src/gen/envd/process/process_pb.js";
import { ProcessService as Sandboxd } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { CANARY, type Confined, policyOf, startConfined } from "../helpers/confined.js";
import { eventually } from "../helpers/eventually.js";
import { askAs } from "../helpers/with-token.js";
import { connectMcp, type McpClient } from "../mcp/connect.js";

/** With all that is narrowed afterwards. */
function wider(base: string): string {
  return policyOf(base).replace(
    `"${base}/workspace/**"]\nwrite_paths`,
    `"${base}/workspace/**", "${base}/outside/**"]\nwrite_paths`,
  );
}

let confined: Confined;
let mcp: McpClient;
beforeAll(async () => {
  confined = await startConfined(wider);
  mcp = await connectMcp(confined.daemon, { token: "free" });
});
afterAll(async () => {
  await mcp[Symbol.asyncDispose]();
  await confined[Symbol.asyncDispose]();
});

const byId = (value: string) => ({ process: { selector: { case: "id" as const, value } } });
const bytes = (text: string) => Buffer.from(text);

async function change(policy: string): Promise<void> {
  const count = () => confined.daemon.logs.filter(({ msg }) => msg === "policy read again").length;
  const before = count();
  writeFileSync(`${confined.base}/policy.toml`, policy);
  await eventually("the policy is read again", () => count() > before);
}

/** A shell that waits for lines, and what it has printed. */
async function startShell(id: string): Promise<{ output: () => string; ended: Promise<void> }> {
  let output = "";
  const events = confined.clients("free").process.start({ command: "bash", id, stdin: true })[Symbol.asyncIterator]();
  await events.next();
  const ended = (async () => {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      const event = next.value.event?.event;
      if (event?.case === "output") output += Buffer.from(event.value.output.value ?? []).toString();
    }
  })();
  // Whoever awaits it is told.
  ended.catch(() => undefined);
  return { output: () => output, ended };
}

/** What a message on a new WebSocket of a process is answered with. */
async function typeOnSocket(id: string, text: string): Promise<string> {
  const url = `${confined.daemon.url.replace("http", "ws")}/v1/processes/${id}/connect?stream=stderr`;
  const socket = new WebSocket(url, { headers: { authorization: "Bearer free" } });
  await once(socket, "open");
  socket.send(text);
  const [answer] = await once(socket, "message");
  socket.terminate();
  return String(answer);
}

describe("a process of an earlier version of a capability", () => {
  it("cannot be typed at when the policy has changed, and can be looked at, signalled, stopped and forgotten", async () => {
    const { process, transport } = confined.clients("free");
    const [envd, sandboxd] = [createClient(Envd, transport), createClient(Sandboxd, transport)];
    const shell = await startShell("old");
    const ofEnvd = envd.start({ process: { cmd: "bash", args: [] }, stdin: true, tag: "old" })[Symbol.asyncIterator]();
    await ofEnvd.next();
    const ofSandboxd = sandboxd.start({ config: { command: ["bash"] } })[Symbol.asyncIterator]();
    const init = (await ofSandboxd.next()).value?.event;
    const processId = init?.case === "init" ? init.value.processId : 0;
    const { process_id } = await mcp.call("sandbox_process_start", { command: "bash" });
    const line = `cat ${confined.canary}\n`;
    const executed = { command: line, id: "executed" };
    expect((await process.execute(executed)).stdout).toBe(CANARY);
    await process.sendInput({ ...byId("old"), data: bytes(line) });
    await eventually("it reads what is granted", () => shell.output() === CANARY);

    await change(policyOf(confined.base));
    expect((await confined.run("free", "Execute", line)).output).toMatch(/denied/);
    const envdSelector = { selector: { case: "tag" as const, value: "old" } };
    const input = { input: { case: "stdin" as const, value: bytes(line) } };
    async function* stream() {
      yield { request: { case: "target" as const, value: byId("old") } };
      yield { request: { case: "data" as const, value: bytes(line) } };
    }
    async function* envdStream() {
      yield { event: { case: "start" as const, value: { process: envdSelector } } };
      yield { event: { case: "data" as const, value: { input } } };
    }
    for (const attempt of [
      () => process.sendInput({ ...byId("old"), data: bytes(line) }),
      () => process.sendInput({ ...byId("old"), data: bytes(line), writeId: "once" }),
      () => process.streamInput(stream()),
      () => envd.sendInput({ process: envdSelector, input }),
      () => envd.streamInput(envdStream()),
      () => sandboxd.writeStdin({ processId, payload: { case: "input", value: bytes(line) } }),
      () => mcp.call("sandbox_process_input", { process_id, content: line }),
    ]) {
      await expect(attempt()).rejects.toThrow(/denied by capability free: .*before the policy changed/);
    }
    const rest = await askAs(confined.daemon, "free", "/v1/processes/old/input", line);
    expect([rest.status, rest.body]).toEqual([403, expect.stringContaining("POLICY_DENIED")]);
    expect(await typeOnSocket("old", line)).toContain("POLICY_DENIED");
    // Who is confined by nothing may do so.
    await confined.clients("operator").process.sendInput({ ...byId("old"), data: bytes("echo operator\n") });
    await eventually("it has read that alone", () => shell.output() === `${CANARY}operator\n`);

    await expect(process.execute(executed)).rejects.toThrow("capability differs");
    const again = process.start({ command: "bash", id: "old", stdin: true })[Symbol.asyncIterator]();
    await expect(again.next()).rejects.toThrow("capability differs");
    expect((await process.getProcess(byId("old"))).process?.state).toBe(1);
    expect((await process.listProcesses({})).processes.map(({ id }) => id)).toContain("old");
    await process.sendSignal({ ...byId("old"), signal: "KILL" });
    await shell.ended;
    await process.deleteProcess(byId("old"));
    await envd.sendSignal({ process: envdSelector, signal: 9 });
    await sandboxd.sendSignal({ processId, signal: 9 });
    await mcp.call("sandbox_process_stop", { process_id });
    await Promise.all([ofEnvd.return?.(undefined), ofSandboxd.return?.(undefined)]);
  });

  it("is of this version as long as only hosts change, which count for it", async () => {
    const { process } = confined.clients("free");
    const shell = await startShell("new");
    await change(policyOf(confined.base).replace('"example.invalid"', '"example.invalid", "example.org"'));
    await process.sendInput({ ...byId("new"), data: bytes("echo typed\n") });
    await eventually("it reads", () => shell.output() === "typed\n");
    await process.closeInput(byId("new"));
    await shell.ended;
  });
});
