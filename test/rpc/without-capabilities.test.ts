import { describe, expect, it } from "vitest";
import { Outcome_Reason } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { startDaemon } from "../helpers/start-daemon.js";

/** As root, but without some of its powers, as in most containers. */
const without = (...capabilities: string[]) => ["setpriv", `--bounding-set=${capabilities.map((name) => `-${name}`).join(",")}`];

describe("a root daemon", () => {
  it("without CAP_SYS_PTRACE finds what another user's command has left behind", async () => {
    await using daemon = await startDaemon({ wrapper: without("sys_ptrace") });
    await using clients = connectTo(daemon.url);
    const mark = `4${Date.now()}`;
    const result = await clients.process.execute({
      command: `(setsid sleep ${mark} &); sleep 1000`,
      timeout: 0.3,
      user: "nobody",
    });
    expect(result.outcome).toMatchObject({ reason: Outcome_Reason.TIMED_OUT, survivingProcesses: 0 });
    expect(processesNamed(mark)).toEqual([]);
  });

  it("without CAP_CHOWN runs commands as another user", async () => {
    await using daemon = await startDaemon({ wrapper: without("chown") });
    await using clients = connectTo(daemon.url);
    expect(await clients.process.execute({ command: "id -un", user: "nobody" })).toMatchObject({ stdout: "nobody\n" });
  });

  it("without CAP_KILL answers when the time is up, and says what it could not end", async () => {
    await using daemon = await startDaemon({ wrapper: without("kill"), args: ["--kill-grace", "100ms"] });
    await using clients = connectTo(daemon.url);
    const mark = `5${Date.now()}`;
    const result = await clients.process.execute({ command: `echo started; sleep ${mark}`, timeout: 0.2, user: "nobody" });
    expect(result).toMatchObject({ stdout: "started\n", exitCode: 124 });
    expect(result.outcome).toMatchObject({ reason: Outcome_Reason.TIMED_OUT, forced: true });
    expect(result.outcome?.survivingProcesses).toBeGreaterThan(0);
    for (const pid of processesNamed(mark)) process.kill(-pid, "SIGKILL");
    await eventually("they are gone", () => daemon.children().length === 0);
  });
});
