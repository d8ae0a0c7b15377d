import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";

/** Long enough to be told from a machine that is busy. */
const HELD_UP_MS = 2_000;
/** Nobody waits for the command that runs. */
const AT_ONCE = ["--shutdown-grace", "0s"];

describe("a daemon that was held up", () => {
  it("says for how long, and which calls ran meanwhile", async () => {
    await using daemon = await startDaemon({ args: ["--stall-threshold", "1s", ...AT_ONCE] });
    await using clients = connectTo(daemon.url);
    const headers = { "x-request-id": "held-up" };
    const running = clients.process.execute({ command: "sleep 30" }, { headers, timeoutMs: 60_000 }).catch(() => undefined);
    await eventually("it runs", () => daemon.children().length === 1);
    // As if a system call blocked: a stopped process makes no use of the processor either.
    daemon.child.kill("SIGSTOP");
    await sleep(HELD_UP_MS);
    daemon.child.kill("SIGCONT");
    const line = await daemon.waitForLog(({ msg }) => msg === "event loop stalled");
    expect(line).toMatchObject({
      level: "warn",
      callsRunning: 1,
      calls: [{ procedure: "/picod.v1.ProcessService/Execute", requestId: "held-up", ageMs: expect.any(Number) }],
      processes: 1,
    });
    expect(line.stallMs).toBeGreaterThan(HELD_UP_MS / 2);
    expect(line.cpuMs).toBeLessThan(HELD_UP_MS / 2);
    await daemon.stop();
    await running;
  });

  it("says nothing when it was idle, or is not asked to", async () => {
    await using silent = await startDaemon({ args: ["--stall-threshold", "0", ...AT_ONCE] });
    await using idle = await startDaemon();
    await using clients = connectTo(silent.url);
    const running = clients.process.execute({ command: "sleep 30" }, { timeoutMs: 60_000 }).catch(() => undefined);
    await eventually("it runs", () => silent.children().length === 1);
    for (const daemon of [silent, idle]) daemon.child.kill("SIGSTOP");
    await sleep(1_000);
    for (const daemon of [silent, idle]) daemon.child.kill("SIGCONT");
    expect(await (await fetch(`${silent.url}/healthz`)).json()).toMatchObject({ status: "ok" });
    for (const daemon of [silent, idle]) await daemon.stop();
    await running;
    const said = [...silent.logs, ...idle.logs].map(({ msg }) => msg);
    expect(said).not.toContain("event loop stalled");
  });
});
