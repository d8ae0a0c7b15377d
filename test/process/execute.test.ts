import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { UNTRACED } from "../../src/trace.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { createRunner } from "../helpers/run-command.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const NOBODY = "nobody";

describe("what a command gets", () => {
  it("runs a command line in a shell and an argument vector without one", async () => {
    await using runner = createRunner();
    expect((await runner.run("echo $((1 + 2)) | tr 3 x")).stdout.text).toBe("x\n");
    expect((await runner.run(["echo", "$HOME", "a b"])).stdout.text).toBe("$HOME a b\n");
  });

  it("has a small environment, in which the request's variables win", async () => {
    await using runner = createRunner({ env: ["A=daemon", "B=daemon"] });
    const { stdout } = await runner.run(["env"], { env: { B: "request", HOME: "/elsewhere" } });
    const names = stdout.text.trim().split("\n").sort();
    expect(names.map((line) => line.split("=")[0])).toEqual([
      "A",
      "B",
      "HOME",
      "LANG",
      "LOGNAME",
      "PATH",
      "PICOD_PROCESS_ID",
      "SHELL",
      "USER",
    ]);
    expect(names).toEqual(expect.arrayContaining(["A=daemon", "B=request", "HOME=/elsewhere", "USER=root"]));
  });

  it("is given its standard input, and /dev/null without one", async () => {
    await using runner = createRunner();
    expect((await runner.run(["cat"], { stdin: Buffer.from("héllo") })).stdout.text).toBe("héllo");
    expect((await runner.run(["readlink", "/proc/self/fd/0"])).stdout.text).toBe("/dev/null\n");
  });

  it("takes an input larger than a pipe, read to the end, in part or not at all", async () => {
    await using runner = createRunner();
    const stdin = Buffer.alloc(5_000_000, "0123456789");
    expect((await runner.run(["wc", "-c"], { stdin })).stdout.text).toBe("5000000\n");
    expect((await runner.run(["head", "-c", "4"], { stdin })).stdout.text).toBe("0123");
    expect((await runner.run(["true"], { stdin })).end).toMatchObject({ reason: "exited", exitCode: 0 });
  });

  it("can open /dev/stdout and /dev/stderr, also as another user", async () => {
    await using runner = createRunner();
    for (const user of ["", NOBODY]) {
      const result = await runner.run("echo a > /dev/stdout; echo b > /dev/stderr; echo c >> /proc/self/fd/1", { user });
      expect([result.stdout.text, result.stderr.text]).toEqual(["a\nc\n", "b\n"]);
    }
  });

  it("leads its own session and process group, with no descriptor but three", async () => {
    await using runner = createRunner();
    const { stdout } = await runner.run("cut -d' ' -f1,5,6 /proc/$$/stat; ls /proc/$$/fd; true");
    const [ids = "", ...descriptors] = stdout.text.trim().split("\n");
    expect(new Set(ids.split(" ")).size).toBe(1);
    expect(descriptors.slice(0, 3)).toEqual(["0", "1", "2"]);
    expect(descriptors).toHaveLength(3);
  });

  it("has every signal at its default and none blocked", async () => {
    await using runner = createRunner();
    const { stdout } = await runner.run(["cat", "/proc/self/status"]);
    const mask = (name: string) => BigInt(`0x${new RegExp(`^${name}:\\s+(\\w+)`, "m").exec(stdout.text)?.[1]}`);
    // 32 and 33 are the C library's own; its posix_spawn leaves them ignored.
    const internal = (1n << 31n) | (1n << 32n);
    expect([mask("SigBlk"), mask("SigIgn") & ~internal]).toEqual([0n, 0n]);
    // A writer whose reader leaves dies of SIGPIPE instead of writing for ever.
    expect((await runner.run("set -o pipefail; yes | head -n 1")).end.exitCode).toBe(141);
  });

  it("starts with the soft limit of open files that the daemon was started with", async () => {
    await using runner = createRunner();
    expect((await runner.run("ulimit -Sn")).stdout.text).toBe("1024\n");
    expect(readFileSync("/proc/self/limits", "utf8")).not.toMatch(/open files +1024 /);
  });

  it("runs under the limits that were asked for", async () => {
    await using runner = createRunner();
    const limits = {
      openFiles: 64n,
      memoryBytes: 512n * 1024n * 1024n,
      cpuSeconds: 7n,
      fileSizeBytes: 1_000_000n,
      processes: 200n,
    };
    const { stdout } = await runner.run(["cat", "/proc/self/limits"], { limits });
    const row = (name: string) => new RegExp(`^${name} +(\\S+) +(\\S+)`, "m").exec(stdout.text)?.slice(1);
    expect(row("Max open files")).toEqual(["64", "64"]);
    expect(row("Max address space")).toEqual(["536870912", "536870912"]);
    expect(row("Max cpu time")).toEqual(["7", "7"]);
    expect(row("Max file size")).toEqual(["1000448", "1000448"]);
    expect(row("Max processes")).toEqual(["200", "200"]);
  });

  it("runs as another user with all of that user's groups and none of the daemon's rights", async () => {
    await using runner = createRunner();
    const { stdout } = await runner.run("id; echo $HOME $USER; grep -E '^Cap(Prm|Eff|Inh|Amb)' /proc/self/status", {
      user: NOBODY,
    });
    expect(stdout.text).toContain("uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)\n/nonexistent nobody\n");
    expect(stdout.text.match(/0000000000000000/g)).toHaveLength(4);
    expect((await runner.run(["id", "-u"], { user: "12345" })).stdout.text).toBe("12345\n");
    expect((await runner.run(["id", "-u"])).stdout.text).toBe("0\n");
  });

  it("starts in the user's home directory, or in the root when there is none", async () => {
    await using runner = createRunner();
    expect((await runner.run(["pwd"], { cwd: "" })).stdout.text).toBe("/root\n");
    expect((await runner.run(["pwd"], { cwd: "", user: NOBODY })).stdout.text).toBe("/\n");
  });

  it("may not read what its user may not", async () => {
    await using runner = createRunner();
    const { end, stderr } = await runner.run("cat /etc/shadow", { user: NOBODY });
    expect(end.exitCode).toBe(1);
    expect(stderr.text).toContain("Permission denied");
  });

  it("finds programs in the PATH of the request and beside its working directory", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/hello`, "#!/bin/sh\necho hello from $PWD\n", { mode: 0o755 });
    expect((await runner.run(["hello"], { env: { PATH: directory.path } })).stdout.text).toBe("hello from /\n");
    expect((await runner.run(["./hello"], { cwd: directory.path })).stdout.text).toBe(`hello from ${directory.path}\n`);
  });
});

describe("how a command ends", () => {
  it.each([
    ["exit 0", { reason: "exited", exitCode: 0, signal: undefined }],
    ["exit 7", { reason: "exited", exitCode: 7, signal: undefined }],
    ["kill -SEGV $$", { reason: "signaled", exitCode: 139, signal: "SIGSEGV", message: "ended by SIGSEGV" }],
    ["kill -KILL $$", { reason: "signaled", exitCode: 137, signal: "SIGKILL" }],
    ["no-such-program-here", { reason: "exited", exitCode: 127 }],
  ])("reports %s", async (command, expected) => {
    await using runner = createRunner();
    expect((await runner.run(command)).end).toMatchObject({ ...expected, forced: false, survivingProcesses: 0 });
  });

  it("reports a program that cannot be started as a shell would", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    const file = `${directory.path}/file`;
    writeFileSync(file, "\x7fnot an executable\n");
    expect((await runner.run(["no-such-program-here"])).end).toMatchObject({
      reason: "spawn-failed",
      exitCode: 127,
      message: "program not found: no-such-program-here",
    });
    expect((await runner.run([file])).end).toMatchObject({
      reason: "spawn-failed",
      exitCode: 126,
      message: `cannot run ${file}: permission denied`,
    });
    chmodSync(file, 0o755);
    expect((await runner.run([file])).end).toMatchObject({ reason: "spawn-failed", exitCode: 126 });
    expect((await runner.run([directory.path])).end).toMatchObject({ reason: "spawn-failed", exitCode: 126 });
  });

  it("reports duration and resource usage", async () => {
    await using runner = createRunner();
    const { end } = await runner.run("sleep 0.1; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    expect(end.durationMs).toBeGreaterThan(100);
    expect(end.usage.userTimeMs).toBeGreaterThan(10);
    expect(end.usage.maxRssBytes).toBeGreaterThan(1_000_000);
  });

  it("answers with the output so far and 124 when the time is up", async () => {
    await using runner = createRunner();
    const { end, stdout } = await runner.run("echo before; sleep 1000; echo after", { timeoutMs: 200 });
    expect(stdout.text).toBe("before\n");
    expect(end).toMatchObject({
      reason: "timed-out",
      exitCode: 124,
      signal: "SIGTERM",
      forced: false,
      message: "timed out after 0.2 s",
    });
  });

  it("kills what ignores TERM after the grace period", async () => {
    await using runner = createRunner({ killGraceMs: ["100ms"] });
    const mark = randomUUID();
    const { end } = await runner.run(`trap "" TERM; echo ready; while :; do sleep 0.05; done # ${mark}`, { timeoutMs: 200 });
    expect(end).toMatchObject({ reason: "timed-out", exitCode: 124, signal: "SIGKILL", forced: true, survivingProcesses: 0 });
    expect(processesNamed(mark)).toEqual([]);
  });

  it("lets a command finish its work within the grace period", async () => {
    await using runner = createRunner();
    const { end, stdout } = await runner.run("trap 'echo saved; exit 5' TERM; echo ready; sleep 1000 & wait", { timeoutMs: 200 });
    expect(stdout.text).toBe("ready\nsaved\n");
    expect(end).toMatchObject({ reason: "timed-out", exitCode: 124, forced: false });
  });

  it("finds and ends descendants that have left group and session", async () => {
    await using runner = createRunner({ killGraceMs: ["200ms"] });
    const mark = randomUUID();
    const escaped = `setsid sh -c 'trap "" TERM; while :; do sleep 0.05; done # ${mark}' > /dev/null 2>&1 < /dev/null &`;
    // The middle process exits, so that the escaped one is an orphan.
    const { end } = await runner.run(`sh -c "${escaped.replaceAll('"', '\\"')}"; echo started; sleep 1000`, { timeoutMs: 300 });
    expect(end).toMatchObject({ reason: "timed-out", forced: true, survivingProcesses: 0 });
    expect(processesNamed(mark)).toEqual([]);
  });

  it("ends the tree and rejects at once when the caller gives up", async () => {
    await using runner = createRunner();
    const mark = randomUUID();
    const abort = new AbortController();
    const call = runner.run(`setsid sleep 1000 & sleep 1000; # ${mark}`, {}, abort.signal);
    await eventually("the command runs", () => processesNamed(mark).length > 0);
    abort.abort(new Error("gone"));
    await expect(call).rejects.toThrow("gone");
    await eventually("the tree is gone", () => processesNamed(mark).length === 0 && runner.sandbox.processes.size === 0);
  });

  it("does not start anything for a caller that has gone already", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    await expect(runner.run(`touch ${directory.path}/ran`, {}, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(existsSync(`${directory.path}/ran`)).toBe(false);
  });

  it("keeps background children, which do not hold the answer and survive writing on", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    const started = performance.now();
    const { end, stdout } = await runner.run(
      `(while :; do echo tick; sleep 0.05; done) & echo $! > ${directory.path}/pid; echo done`,
    );
    expect(end).toMatchObject({ reason: "exited", exitCode: 0 });
    expect(stdout.text).toContain("done\n");
    expect(performance.now() - started).toBeLessThan(5_000);
    const pid = Number(readFileSync(`${directory.path}/pid`, "utf8"));
    // It goes on printing into the pipe that the daemon still reads.
    const written = () => Number(/write_bytes|wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
    const before = written();
    await eventually("it prints on", () => written() > before + 20);
    process.kill(pid, "SIGKILL");
  });

  it("has all output of a pipeline whose last part outlives the shell", async () => {
    await using runner = createRunner();
    const { stdout } = await runner.run("(echo late) & echo early");
    expect(stdout.text.split("\n").sort()).toEqual(["", "early", "late"]);
  });

  it("reports each of many commands that end at once", async () => {
    await using runner = createRunner();
    const codes = await Promise.all(Array.from({ length: 100 }, (_, index) => runner.run(["sh", "-c", `exit ${index}`])));
    expect(codes.map(({ end }) => end.exitCode)).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  it("leaves no descriptor and no zombie behind", async () => {
    await using runner = createRunner();
    await runner.run("true", { stdin: Buffer.from("x") });
    const before = readdirSync("/proc/self/fd").length;
    for (let round = 0; round < 20; round++) await runner.run("true", { stdin: Buffer.alloc(200_000) });
    await runner.run(["no-such-program-here"], { stdin: Buffer.from("x") });
    await eventually("descriptors are closed", () => readdirSync("/proc/self/fd").length <= before);
  });
});

describe("many that start at once", () => {
  const crowd = <T>(run: (index: number) => Promise<T>) => Promise.all(Array.from({ length: 64 }, (_, index) => run(index)));

  it("have each its own output, input, limit of open files and user", async () => {
    await using runner = createRunner();
    const results = await crowd((index) =>
      runner.run("cat; ulimit -Sn; id -un", { stdin: Buffer.from(`${index}\n`), user: index % 8 === 0 ? NOBODY : "" }),
    );
    expect(results.map(({ stdout }) => stdout.text)).toEqual(
      results.map((_, index) => `${index}\n1024\n${index % 8 === 0 ? NOBODY : "root"}\n`),
    );
    expect(readFileSync("/proc/self/limits", "utf8")).not.toMatch(/open files +1024 /);
  });

  it("leave nothing behind when they cannot be started", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    const file = `${directory.path}/file`;
    writeFileSync(file, "\x7fnot an executable\n", { mode: 0o755 });
    await crowd(() => runner.run("true"));
    const before = readdirSync("/proc/self/fd").length;
    const results = await crowd(() => runner.run([file], { stdin: Buffer.from("x") }));
    for (const { end } of results) expect(end).toMatchObject({ reason: "spawn-failed", exitCode: 126 });
    await eventually("descriptors are closed", () => readdirSync("/proc/self/fd").length <= before);
    expect(runner.sandbox.processes.size).toBe(0);
  });

  it("are ended with the others when all are, and when their callers have left meanwhile", async () => {
    const runner = createRunner();
    const name = `crowd-${randomUUID()}`;
    const abort = new AbortController();
    const abandoned = crowd(() => runner.run(["bash", "-c", "exec -a $0 sleep 1000", name], {}, abort.signal).catch(String));
    abort.abort(new Error("gone"));
    expect(new Set(await abandoned)).toEqual(new Set(["Error: gone"]));
    const others = crowd(() => runner.run(["bash", "-c", "exec -a $0 sleep 1000", name]));
    await runner.sandbox.processes.close();
    for (const { end } of await others) expect(end.reason).toBe("cancelled");
    expect(processesNamed(name)).toEqual([]);
  });
});

describe("what is refused", () => {
  it.each([
    ["an empty command", "", {}, /invalid command: it is empty/],
    ["a NUL byte", "echo \0", {}, /NUL/],
    ["an unknown user", "true", { user: "no-such-user" }, /no such user: "no-such-user"/],
    ["a missing working directory", "true", { cwd: "/no/such/place" }, /ENOENT.*chdir|no such file or directory/],
    ["a file as working directory", "true", { cwd: "/etc/passwd" }, /ENOTDIR|not a directory/],
    ["arguments over the system's limit", `echo ${"x".repeat(140_000)}`, {}, /128 KiB/],
  ])("refuses %s", async (_name, command, options, message) => {
    await using runner = createRunner();
    await expect(runner.run(command, options)).rejects.toThrow(message);
  });

  it("refuses a working directory that the user may not enter", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/closed`, { mode: 0o700 });
    await expect(runner.run("true", { cwd: `${directory.path}/closed`, user: NOBODY })).rejects.toMatchObject({
      code: "EACCES",
      syscall: "chdir",
    });
  });

  it("refuses more processes than the limit", async () => {
    await using runner = createRunner({ maxProcesses: ["2"] });
    const abort = new AbortController();
    const running = [1, 2].map(() => runner.run("sleep 1000", {}, abort.signal));
    await expect(runner.run("true")).rejects.toMatchObject({
      reason: "PROCESS_LIMIT_REACHED",
      message: /2 are running, the limit is 2/,
    });
    abort.abort(new Error("enough"));
    await Promise.allSettled(running);
  });
});

describe("an id", () => {
  const options = (id: string) => ({ id });

  it("gives a repeated request the one result, and the command runs once", async () => {
    await using runner = createRunner();
    using directory = temporaryDirectory();
    const { executions } = runner.sandbox;
    const once = (abortSignal = new AbortController().signal) => {
      const request = {
        command: { line: `echo ran >> ${directory.path}/log; sleep 0.2; echo done` },
        cwd: "/",
        env: {},
        user: "",
        stdin: new Uint8Array(),
        timeoutMs: undefined,
        maxOutputBytes: undefined,
        limits: {},
        trace: UNTRACED,
        capability: undefined,
        ...options("job-1"),
      };
      return executions.once(request, abortSignal, () => runner.run(request.command.line, options("job-1")));
    };
    const abort = new AbortController();
    const cut = once(abort.signal);
    abort.abort(new Error("connection lost"));
    await expect(cut).rejects.toThrow("connection lost");
    const [first, second] = await Promise.all([once(), once()]);
    expect(first).toBe(second);
    expect(await once()).toBe(first);
    expect(first.stdout.text).toBe("done\n");
    expect(readFileSync(`${directory.path}/log`, "utf8")).toBe("ran\n");
  });
});
