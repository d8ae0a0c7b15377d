import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { statfsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Outcome_Reason } from "../../src/gen/picod/v1/process_pb.js";
import type { Protocol } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { createMemoryCgroup } from "../helpers/memory-cgroup.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "../rpc/support/http1.js";
import { selectId, startAndLeave } from "../rpc/support/processes.js";
import { Hostile, SLOW_BEGINNINGS, sendGarbage } from "./hostile.js";
import { CLIENTS_BESIDE_FAULT, FAULT_SECONDS, random, timed, underLoad } from "./run.js";

const MIB = 1024 * 1024;
const FAULT_MS = FAULT_SECONDS * 1000;
/** Of those who need no new connection for a call. */
const KEEPING: readonly Protocol[] = ["gRPC", "gRPC-Web over HTTP/2", "Connect over HTTP/2"];
/** Every way to say that there is not enough of something. */
const SCARCE = ["ResourceExhausted"];
/** Of those in use: a new one must find a low number that has just become free. */
const SHARE_OF_DESCRIPTORS = 0.4;

it("clients that are killed in the middle", async () => {
  await using daemon = await startDaemon({ args: ["--kill-grace", "300ms"] });
  const kill = async ({ fleet }: { fleet: { kills: number; killAndReplace(at: number): void } }) => {
    const until = performance.now() + FAULT_MS;
    while (performance.now() < until) {
      await sleep(500 + random(500));
      fleet.killAndReplace(random(4));
    }
    return `${fleet.kills} kills of 5 clients each`;
  };
  await underLoad("killed clients", daemon, kill, { leavesWork: true });
});

it("clients that stop reading", async () => {
  await using daemon = await startDaemon();
  using directory = temporaryDirectory();
  const path = `${directory.path}/large`;
  writeFileSync(path, Buffer.alloc(256 * MIB));
  await underLoad("clients that stop reading", daemon, async ({ clients }) => {
    using hostile = new Hostile(daemon.port);
    const id = await startAndLeave(clients, { command: "exec cat /dev/zero" });
    for (const target of [`/v1/files/${path}`, `/v1/processes/${id}/output`]) {
      const request = `GET ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`;
      for (let count = 0; count < 20; count++) hostile.connect().pause().write(request);
    }
    await sleep(FAULT_MS);
    const peak = daemon.rss();
    await clients.process.stopProcess(selectId(id));
    await clients.process.deleteProcess(selectId(id));
    return `40 stalled downloads and outputs, RSS meanwhile ${(peak / MIB).toFixed(0)} MiB`;
  });
});

it("a disk that is full", async () => {
  await using daemon = await startDaemon();
  using disk = mountedTmpfs("size=6m");
  const options = { directory: disk.path, mayFail: SCARCE, mustFail: true };
  await underLoad("full disk", daemon, () => sleep(FAULT_MS, "6 MiB"), options);
  execFileSync("find", [disk.path, "-mindepth", "1", "-delete"]);
  const { blocks, bfree } = statfsSync(disk.path);
  expect(bfree, "unnamed files hold space").toBe(blocks);
});

it("no descriptors", async () => {
  await using daemon = await startDaemon();
  const limit = (count: number) => execFileSync("prlimit", [`--pid=${daemon.pid}`, `--nofile=${count}:`]);
  const scarce = async () => {
    await sleep(FAULT_MS / 2);
    const open = daemon.descriptors();
    limit(Math.floor(open * SHARE_OF_DESCRIPTORS));
    await sleep(FAULT_MS);
    limit(20_000);
    await sleep(FAULT_MS / 2);
    return `${Math.floor(open * SHARE_OF_DESCRIPTORS)} where ${open} are open`;
  };
  // A connection that is accepted without a descriptor for it is closed, and whoever was on it cannot clean up.
  const mayFail = [...SCARCE, "connection"];
  await underLoad("no descriptors", daemon, scarce, { mayFail, mustFail: true, leavesWork: true });
});

it("a child beyond the memory limit", async () => {
  await using cgroup = createMemoryCgroup(512 * MIB);
  await using daemon = await startDaemon({ wrapper: cgroup.wrapper });
  await underLoad("memory limit", daemon, async ({ clients }) => {
    let ended = 0;
    const until = performance.now() + FAULT_MS;
    do {
      const { outcome } = await clients.process.execute({ argv: ["tail", "/dev/zero"], timeout: 0 });
      expect(outcome?.reason).toBe(Outcome_Reason.OUT_OF_MEMORY);
      ended++;
    } while (performance.now() < until);
    return `${ended} ended as OUT_OF_MEMORY in 512 MiB`;
  });
});

it("SIGSTOP and SIGCONT", async () => {
  await using daemon = await startDaemon();
  await underLoad("stopped daemon", daemon, async () => {
    let stops = 0;
    const until = performance.now() + FAULT_MS;
    while (performance.now() < until) {
      await sleep(500 + random(500));
      daemon.child.kill("SIGSTOP");
      await sleep(1_000 + random(1_000));
      daemon.child.kill("SIGCONT");
      stops++;
    }
    return `${stops} stops of 1 to 2 s`;
  });
});

// The wall clock is the machine's; what a daemon measures time with is the monotonic one, and the kernel jumps that for nobody. What
// remains is a clock that begins elsewhere.
it("a monotonic clock after ten years", async () => {
  const wrapper = ["unshare", "--time", "--monotonic", "315360000", "--boottime", "315360000"];
  await using daemon = await startDaemon({ wrapper });
  await underLoad("old clock", daemon, () => sleep(FAULT_MS, "10 years up"));
});

it("10,000 connections that say nothing", async () => {
  await using daemon = await startDaemon();
  await underLoad(
    "silent connections",
    daemon,
    async ({ fleet }) => {
      // Who comes later is one of the many.
      await eventually("all clients are connected", () => fleet.atWork.size === CLIENTS_BESIDE_FAULT);
      using hostile = new Hostile(daemon.port);
      for (let batch = 0; batch < 100; batch++) {
        const sockets = Array.from({ length: 100 }, () => hostile.connect());
        await Promise.all(sockets.map((socket) => Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => 0)));
      }
      const most = daemon.descriptors();
      const answered = await timed(async () => eventually("a new connection is answered", () => answers(daemon)));
      await eventually("all are closed", () => hostile.open === 0);
      return `10,000, at most ${most} descriptors, a new connection was served after ${(answered / 1000).toFixed(1)} s`;
    },
    { protocols: KEEPING, kinds: ["exec", "upload"] },
  );
});

it("slow-loris", async () => {
  await using daemon = await startDaemon();
  await underLoad("slow-loris", daemon, async () => {
    using hostile = new Hostile(daemon.port);
    for (let number = 0; number < 1_000; number++) {
      const socket = hostile.connect();
      socket.resume().write(SLOW_BEGINNINGS[number % SLOW_BEGINNINGS.length] ?? "");
    }
    // Headers have 10 s, and are looked at every 2 s.
    const startedAt = performance.now();
    while (hostile.open > 0 && performance.now() - startedAt < 30_000) {
      await sleep(500);
      for (const socket of hostile.sockets) if (!socket.destroyed && socket.bytesWritten > 10) socket.write("x");
    }
    expect(hostile.open).toBe(0);
    return `1,000 connections, all closed after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  });
});

it("1 GiB of garbage", async () => {
  await using daemon = await startDaemon();
  const send = async () => {
    const startedAt = performance.now();
    const connections = await sendGarbage(daemon.port, 1024 * MIB);
    return `1 GiB on ${connections} connections in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  };
  // What was read goes with the next collection of the old heap, which an idle daemon is in no hurry for.
  await underLoad("garbage", daemon, send, { maxGrowthBytes: 128 * MIB });
});

async function answers(daemon: Parameters<typeof ask>[0]): Promise<boolean> {
  const answer = await ask(daemon, "/healthz", { timeout: 1_000 }).catch(() => undefined);
  return answer?.status === 200;
}
