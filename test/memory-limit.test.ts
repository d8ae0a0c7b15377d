import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "./helpers/clients.js";
import { startDaemon } from "./helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "./helpers/temporary-directory.js";

const MIB = 1024 * 1024;
/** What a kernel of version 1 writes for no limit. */
const UNLIMITED_V1 = "9223372036854771712";

/** The daemon sees these files in /sys/fs/cgroup, and nothing changes for the rest of the machine. */
function withCgroups(directory: TemporaryDirectory, files: Readonly<Record<string, string>>): readonly string[] {
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${text}\n`);
  }
  const script = 'mount --bind "$1" /sys/fs/cgroup && shift && exec "$@"';
  return ["unshare", "--mount", "sh", "-c", script, "sh", directory.path];
}

/** Paths of this process's own cgroups, which the daemon inherits: version 2, and that of the memory controller of version 1. */
function ownPaths(): { readonly v2: string | undefined; readonly v1: string | undefined } {
  const lines = readFileSync("/proc/self/cgroup", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  return {
    v2: lines.find(([, controllers]) => controllers === "")?.[2],
    v1: lines.find(([, controllers = ""]) => controllers.split(",").includes("memory"))?.[2],
  };
}

async function heapMib(wrapper: readonly string[]): Promise<number> {
  await using daemon = await startDaemon({ wrapper });
  const commandLine = readFileSync(`/proc/${daemon.pid}/cmdline`, "latin1");
  return Number(/--max-old-space-size=(\d+)/.exec(commandLine)?.[1]);
}

describe("the heap", () => {
  // A kernel has one of the two, or both; what it has not cannot be looked up.
  const { v2, v1 } = ownPaths();
  const version2 = v2 === undefined ? [] : [[join(v2, "memory.max")] as const];
  const version1 = v1 === undefined ? [] : [[join("memory", v1, "memory.limit_in_bytes")] as const];

  it("has 512 MiB where nothing limits the memory", async () => {
    using directory = temporaryDirectory();
    const files = [...version2.map(([name]) => [name, "max"]), ...version1.map(([name]) => [name, UNLIMITED_V1])];
    expect(await heapMib(withCgroups(directory, Object.fromEntries(files)))).toBe(512);
  });

  it.each([...version2, ...version1])("has a quarter of what %s says", async (name) => {
    using directory = temporaryDirectory();
    expect(await heapMib(withCgroups(directory, { [name]: String(1024 * MIB) }))).toBe(256);
  });

  it.each([...version2, ...version1])("has 48 MiB however little %s says, and that is enough", async (name) => {
    using directory = temporaryDirectory();
    const wrapper = withCgroups(directory, { [name]: String(64 * MIB) });
    expect(await heapMib(wrapper)).toBe(48);
    await using daemon = await startDaemon({ wrapper });
    await using clients = connectTo(daemon.url);
    const large = "head -c 2000000 /dev/zero | tr '\\0' x";
    const calls = Array.from({ length: 8 }, () => clients.process.execute({ command: large }));
    for (const { stdout } of await Promise.all(calls)) expect(stdout).toHaveLength(2_000_000);
  });
});

describe("commands", () => {
  it("are ended before the daemon when memory runs out, and know nothing of its threads", async () => {
    const own = Number(readFileSync("/proc/self/oom_score_adj", "utf8"));
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { stdout } = await clients.process.execute({ command: "sleep 0.2; cat /proc/self/oom_score_adj; env" });
    expect(stdout.split("\n")[0]).toBe(String(Math.min(1000, own + 200)));
    expect(stdout).not.toContain("UV_THREADPOOL_SIZE");
    expect(Number(readFileSync(`/proc/${daemon.pid}/oom_score_adj`, "utf8"))).toBeLessThanOrEqual(own);
  });
});
