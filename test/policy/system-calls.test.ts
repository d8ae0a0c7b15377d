import { writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DENIED_CALLS } from "../../src/os/forbidden-calls.js";
import { type Confined, policyOf, startConfined } from "../helpers/confined.js";

const NODE = process.execPath;

let confined: Confined;
beforeAll(async () => {
  confined = await startConfined((base) => policyOf(base).replaceAll("read_paths = [", `read_paths = ["${dirname(NODE)}/**", `));
});
afterAll(() => confined[Symbol.asyncDispose]());

/** `call(name, arguments…)` prints the name and what it was told. */
const PRELUDE = `
import ctypes, os, platform, resource, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *arguments):
    done = libc.syscall(number, *[ctypes.c_ulong(a & 0xffffffffffffffff) if isinstance(a, int) else a for a in arguments])
    print(name, "EPERM" if done == -1 and ctypes.get_errno() == 1 else f"{done} {ctypes.get_errno()}", flush=True)
x64 = platform.machine() == "x86_64"
`;

/** Lines that a script prints. */
async function python(caller: string, script: string): Promise<string[]> {
  const { output } = await confined.execute(caller, { argv: ["python3", "-c", PRELUDE + script], cwd: confined.workspace });
  return output.trimEnd().split("\n");
}

/** Of the process \`pid\`, each in a way that changes it. The last are of its group and of its user. */
const ON_ANOTHER = `
limit = (ctypes.c_ulong * 2)(1, 1)
parameter, mask = (ctypes.c_int * 1)(0), (ctypes.c_ulong * 16)(1)
attributes = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0))
call("prlimit", 302 if x64 else 261, pid, 0, limit, 0)
call("prlimit of files", 302 if x64 else 261, pid, 7, limit, 0)
call("sched_setaffinity", 203 if x64 else 122, pid, 128, mask)
call("sched_setparam", 142 if x64 else 118, pid, parameter)
call("sched_setscheduler", 144 if x64 else 119, pid, 3, parameter)
call("sched_setattr", 314 if x64 else 274, pid, attributes, 0)
call("setpriority", 141 if x64 else 140, 0, pid, 19)
call("ioprio_set", 251 if x64 else 30, 1, pid, 3 << 13)
call("setpriority of the group", 141 if x64 else 140, 1, pid, 19)
call("setpriority of the user", 141 if x64 else 140, 2, 0, 19)
call("ioprio_set of the user", 251 if x64 else 30, 3, 0, 3 << 13)
`;

describe("a process of somebody else", () => {
  it.each(["free", "other"])("is not limited, bound or slowed down by %s's commands", async (caller) => {
    const { process: operator } = confined.clients("operator");
    const id = `sleeper-${caller}`;
    const started = operator.start({ command: "exec sleep 100", id })[Symbol.asyncIterator]();
    await started.next();
    const target = { process: { selector: { case: "id" as const, value: id } } };
    const pid = (await operator.getProcess(target)).process?.pid;
    const state = () =>
      confined.run(
        "operator",
        "Execute",
        `cat /proc/${pid}/limits; chrt -p ${pid}; taskset -p ${pid}; ionice -p ${pid}; ps -o ni= ${pid}`,
      );
    const before = await state();
    const told = await python(caller, `pid = ${pid}${ON_ANOTHER}`);
    expect(told.filter((line) => !line.endsWith(" EPERM"))).toEqual([]);
    expect(told.length).toBe(11);
    expect(await state()).toEqual(before);
    await operator.deleteProcess({ ...target, stop: true });
    await started.return?.(undefined);
  });

  it("may be the daemon, which runs on as it was", async () => {
    const told = await python("free", `pid = os.getppid()${ON_ANOTHER}`);
    expect(told.filter((line) => !line.endsWith(" EPERM"))).toEqual([]);
    expect((await confined.run("free", "Execute", "echo alive")).output).toBe("alive\n");
  });
});

describe("system calls of a confined command", () => {
  it("do not lead to other processes, to the kernel or around the filter", async () => {
    const calls = Object.entries(DENIED_CALLS);
    const told = await python("free", calls.map(([name, number]) => `call("${name}", ${number}, 0, 0, 0, 0, 0)`).join("\n"));
    expect(told).toEqual(calls.map(([name]) => `${name} EPERM`));
  });

  it("make no namespaces", async () => {
    const told = await python(
      "free",
      `for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    call("unshare", 272 if x64 else 97, flag)
    call("clone", 56 if x64 else 220, flag | 17, 0, 0, 0, 0)
call("unshare", 272 if x64 else 97, 0x80)
print("clone3", libc.syscall(435, 0, 0), ctypes.get_errno())
print("unknown", libc.syscall(500, 0, 0), ctypes.get_errno())`,
    );
    expect(told).toEqual([
      ...Array.from({ length: 7 }, () => ["unshare EPERM", "clone EPERM"]).flat(),
      "unshare EPERM",
      "clone3 -1 38",
      "unknown -1 38",
    ]);
  });

  it.skipIf(process.arch !== "x64")("are those of its own architecture", async () => {
    // getppid: by number 64 of i386, and by number 110 of x32.
    const run = (code: string) => `import mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("${code}"))
print("told", ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))(), flush=True)`;
    const i386 = await confined.execute("free", { argv: ["python3", "-c", PRELUDE + run("b840000000cd80c3")] });
    expect(i386).toMatchObject({ output: "" });
    expect(await python("free", run("b86e0000400f05c3"))).toEqual(["told -38"]);
  });

  it("are all that it needs of its own limits, priority and processors", async () => {
    const line =
      "ulimit -n 100 && ulimit -n; nice -n 5 nice; prlimit --nofile; taskset -c 0 true && ionice -c 3 chrt -b 0 echo ran";
    const { output } = await confined.run("free", "Execute", line);
    expect(output).toMatch(/^100\n5\n[\s\S]*NOFILE[\s\S]*ran\n$/);
  });

  it("are all that programs need for threads and children", async () => {
    const threads = `import threading, subprocess, multiprocessing
threads = [threading.Thread(target=print, args=("thread",)) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(subprocess.check_output(["echo", "child"], text=True), end="")`;
    const node = `const { Worker } = require("node:worker_threads");
new Worker("require('node:fs').promises.readFile('p.py').then(() => console.log('worker'))", { eval: true }).on("exit", () =>
  console.log(require("node:child_process").execSync("echo of-node").toString().trim()));`;
    writeFileSync(`${confined.workspace}/p.py`, threads);
    writeFileSync(`${confined.workspace}/n.cjs`, node);
    const line = `set -e; python3 p.py | sort -u; ${NODE} n.cjs; git init -q r; cd r; echo x > f; git add f
git -c user.name=a -c user.email=b commit -qm first; git gc -q; git log --format=%s; printf 'all: a b\\na b: ; @echo $@\\n' > Makefile; make -s -j2 | sort
(echo in-background; sleep 0) & wait`;
    const { output, exitCode } = await confined.run("free", "Execute", line);
    expect([exitCode, output]).toEqual([0, "child\nthread\nworker\nof-node\nfirst\na\nb\nin-background\n"]);
  });
});
