import { describe, expect, it } from "vitest";
import { listProcesses } from "../../src/os/proc.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { startAndLeave } from "../rpc/support/processes.js";

const AS_PID_1 = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
const ORPHANS = 10_000;

const childrenOf = (pid: number) => listProcesses().filter((entry) => entry.parentPid === pid);

/** The daemon itself, whatever was put before its command. */
function pidOf(daemon: Daemon, wrapper: readonly string[]): number {
  return wrapper.length === 0 ? daemon.pid : (daemon.children()[0] ?? 0);
}

describe.each([
  ["as PID 1", AS_PID_1],
  ["as a child subreaper", []],
])("the daemon %s", (_kind, wrapper) => {
  it("leaves no zombie of the orphans that come to it", { timeout: 120_000 }, async () => {
    const daemon = await startDaemon({ wrapper });
    await using clients = connectTo(daemon.url);
    const pid = pidOf(daemon, wrapper);
    const command = `i=0; while [ $i -lt ${ORPHANS} ]; do (: &); i=$((i+1)); done; echo $i`;
    const { stdout } = await clients.process.execute({ argv: ["sh", "-c", command], timeout: 0 });
    expect(stdout).toBe(`${ORPHANS}\n`);
    await eventually("no child is left", () => childrenOf(pid).length === 0);
    process.kill(pid, "SIGTERM");
    expect(await daemon.exited).toBe(0);
  });

  it("ends its processes on TERM, stubborn ones too, and exits with 0 in bounded time", async () => {
    using directory = temporaryDirectory();
    const mark = `${directory.path}/stubborn`;
    const daemon = await startDaemon({ wrapper, args: ["--shutdown-grace", "60s", "--kill-grace", "300ms"] });
    await using clients = connectTo(daemon.url);
    const pid = pidOf(daemon, wrapper);
    await startAndLeave(clients, { command: `trap '' TERM; while :; do sleep 0.1; done; : ${mark}` });
    await startAndLeave(clients, {
      command: `(setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done; : ${mark}' &); sleep 1000`,
    });
    const executing = clients.process.execute({ id: "kept", command: `sleep 1000; : ${mark}` }).catch(() => undefined);
    await eventually("all run", () => processesNamed(mark).length >= 3);
    await clients.process.stopProcess({ process: { selector: { case: "id", value: "kept" } } });
    await executing;
    const startedAt = performance.now();
    process.kill(pid, "SIGTERM");
    expect(await daemon.exited).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(processesNamed(mark)).toEqual([]);
  });
});
