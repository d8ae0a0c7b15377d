import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type Client, type ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Process as Envd } from "../../src/gen/envd/process/process_pb.js";
import { CANARY, type Confined, FACADES, startConfined, startListener } from "../helpers/confined.js";
import { eventually } from "../helpers/eventually.js";

let confined: Confined;
beforeAll(async () => {
  confined = await startConfined();
});
afterAll(() => confined[Symbol.asyncDispose]());

/** Nothing outside was read or changed, whatever was answered. */
function expectUntouched(output: string): void {
  expect(output).not.toContain(CANARY);
  const { mode, uid } = statSync(confined.canary);
  expect([mode & 0o7777, uid]).toEqual([0o644, 0]);
  expect(readFileSync(confined.canary, "utf8")).toBe(CANARY);
  expect(statSync(confined.canary).nlink).toBe(1);
  expect(existsSync(`${confined.base}/outside/new`)).toBe(false);
}

/** Lines that a list of commands does not let through: nothing of them is run. `$CANARY` is the path of a file outside. */
const REFUSED_LINES: Readonly<Record<string, string>> = {
  "another program": "cat $CANARY",
  "behind an allowed one": "ls; cat $CANARY",
  "on a line of its own": "ls\ncat $CANARY",
  "in a shell in a shell": "sh -c 'sh -c \"cat $CANARY\"'",
  "in a substitution": "ls $(cat $CANARY)",
  "in back-quotes": 'ls "`cat $CANARY`"',
  "in a process substitution": "ls <(cat $CANARY)",
  "in a here-document": "ls <<X\n$(cat $CANARY)\nX",
  "by ANSI-C quotes": "$'\\x63at' $CANARY",
  "by a glob": "/usr/bin/c[a]t $CANARY",
  "by a brace": "{cat,$CANARY}",
  "by a variable": "x=cat; $x $CANARY",
  "by an assignment of PATH": "PATH=$PWD:$PATH; ls",
  "by LD_PRELOAD": "LD_PRELOAD=$PWD/x.so ls",
  "by BASH_ENV": "BASH_ENV=$CANARY bash -c ls",
  "by a variable of git that is not granted": "SSH_ASKPASS=id git fetch",
  "by a function of that name": "ls() { cat $CANARY; }; ls",
  "by an alias": "alias ls=cat; ls $CANARY",
  "by eval": "eval 'cat $CANARY'",
  "by source": "source $CANARY",
  "by exec": "exec cat $CANARY",
  "by command": "command cat $CANARY",
  "by trap": "trap 'cat $CANARY' EXIT",
  "by hash": "hash -p /usr/bin/cat ls; ls $CANARY",
  "by the loader": "/lib64/ld-linux-x86-64.so.2 /usr/bin/cat $CANARY",
  "in another case": "LS",
  "by a look-alike": "gіt status",
  "in the background": "cat $CANARY & ls",
  "by a coprocess": "coproc cat $CANARY",
  "by a file of the workspace": "./program",
  "by a path that leads there": "/proc/self/exe -c 'cat $CANARY'",
  "by a descriptor": "/proc/self/fd/3",
  "by the value of a variable": "x='a[$(cat $CANARY)]'; echo $((x))",
};

describe("a list of commands", () => {
  it.each(FACADES)("lets nothing else be run through %s, and every refusal is audited", async (facade) => {
    const lines = Object.entries(REFUSED_LINES);
    const ran = await Promise.all(
      lines.map(async ([title, line]) => {
        const told = await confined.run("listed", facade, line.replaceAll("$CANARY", confined.canary));
        return [title, told] as const;
      }),
    );
    for (const [title, { reason, output, metadata }] of ran) {
      expect([title, reason, output]).toEqual([title, "POLICY_DENIED", expect.stringContaining("capability listed")]);
      if (metadata.capability !== undefined) expect(metadata.permission).toMatch(/^shell\./);
      expectUntouched(output);
    }
    const denials = () =>
      readFileSync(confined.audit, "utf8")
        .split("\n")
        .filter((line) => line.includes("shell.allowed_commands") && line.includes('"listed"')).length;
    await eventually("all are in the audit log", () => denials() >= lines.length * (FACADES.indexOf(facade) + 1));
  });

  it.each(FACADES)("lets what it has be run through %s", async (facade) => {
    const { reason, exitCode, output } = await confined.run(
      "listed",
      facade,
      "git --version && echo $((1 + 1)) | xargs echo done",
    );
    expect([facade, reason, exitCode, output]).toEqual([
      facade,
      undefined,
      expect.any(Number),
      expect.stringContaining("git version"),
    ]);
  });
});

/** What allowed programs would do for an attacker: the kernel lets them not. */
const HELPED: Readonly<Record<string, string>> = {
  "env runs another program": "env cat $CANARY",
  "xargs runs another program": "echo $CANARY | xargs cat",
  "find runs another program": "find . -maxdepth 0 -exec cat $CANARY ';'",
  "make runs another program": "printf 'x:\\n\\tcat $CANARY; /usr/bin/id\\n' | make -f - x",
  "git runs another program": "git -c alias.x='!cat $CANARY' x",
  "git runs another program as its pager": "git -c core.pager='cat $CANARY' -p help -a",
  "env gives LD_PRELOAD": "env LD_PRELOAD=$CANARY ls",
  "cp copies it": "cp $CANARY copied; ls; cp /dev/stdin $OUTSIDE/new <<< x",
  "ln links it": "ln $CANARY linked; ln -s $CANARY soft; python3 -c 'print(open(\"soft\").read())'",
  "a redirection reads it": "python3 -c 'import sys; print(sys.stdin.read())' < $CANARY",
  "a redirection writes it": "echo x > $CANARY; echo x >> $CANARY; echo x > $OUTSIDE/new",
  "it is truncated": "python3 -c 'import os; os.truncate(\"$CANARY\", 0)'",
  "it is removed or moved": 'python3 -c \'import os; os.rename("$CANARY", "moved")\'',
  "its mode is changed and it is opened": "chmod 777 $CANARY; python3 -c 'print(open(\"$CANARY\").read())'",
  "a file is written and executed": "printf '#!/bin/sh\\necho ran-\"it\"\\n' > s; chmod +x s; env ./s",
  "a script has a forbidden interpreter": "printf '#!/usr/bin/cat $CANARY\\n' > c; chmod +x c; env ./c",
  "a program is copied and executed": "cp /bin/bash b; chmod +x b; env ./b -c 'echo ran-\"it\"'",
  "a program is linked and executed": "ln /usr/bin/cat l; ln -s /usr/bin/cat l2; env ./l $CANARY; env ./l2 $CANARY",
  "a program is found in a PATH of its own": "printf '#!/bin/sh\\necho ran-\"it\"\\n' > ls; chmod +x ls; env PATH=. ls",
  "/proc leads to it":
    "python3 -c 'print(open(\"/proc/self/root$CANARY\").read())'; python3 -c 'print(open(\"/proc/1/environ\").read())'",
};

describe("a program that is allowed", () => {
  it.each(Object.entries(HELPED))("does not help when %s", async (_title, line) => {
    const command = line.replaceAll("$CANARY", confined.canary).replaceAll("$OUTSIDE", `${confined.base}/outside`);
    const { reason, output } = await confined.run("listed", "Execute", command);
    expect([reason, output]).toEqual([undefined, expect.not.stringContaining("ran-it")]);
    expect(output).not.toMatch(/uid=/);
    expectUntouched(output);
  });
});

/** What a shell with all programs is held back from by the kernel. The pattern is what it is told. */
const HELD_BACK: Readonly<Record<string, readonly [line: string, told: RegExp]>> = {
  "reads it": ["cat $CANARY; head -c 1 $CANARY; grep . $CANARY", /Permission denied/],
  "reads it over links": ["ln -sf $CANARY s; cat s; cat ../outside/canary; cat $PWD/../outside/canary", /Permission denied/],
  "reads it by another name": ["ln $CANARY h; mv $CANARY m; cp $CANARY c; cat h m c", /Permission denied|cross-device/],
  "changes its mode, owner, times and attributes": [
    "chmod 777 $CANARY; chown 1000 $CANARY; touch -d 2001-01-01 $CANARY; setfattr -n user.x -v y $CANARY; chmod 755 made-*",
    /Read-only file system/,
  ],
  "lists what is beside": ["ls $OUTSIDE ..; echo ../*", /Permission denied/],
  "writes it": [
    "echo x > $CANARY; truncate -s 0 $CANARY; touch $OUTSIDE/new; mkdir $OUTSIDE/new; rm -f $CANARY",
    /Permission denied|Read-only/,
  ],
  "reads secrets of the system": ["cat /etc/shadow /etc/passwd ~root/.bashrc", /Permission denied/],
  "reads the environment of others": [
    "cat /proc/$PPID/environ /proc/1/environ; ls /proc/$PPID/fd; ls /proc/$PPID/root",
    /Permission denied/,
  ],
  "reads the memory of others": ["cat /proc/$PPID/mem /dev/mem /dev/kmem", /Permission denied|No such file/],
  "signals the daemon": ["kill -9 $PPID; kill -0 $PPID; kill -STOP $PPID; kill -0 1", /not permitted/i],
  "limits the daemon": [
    "prlimit --pid $PPID --cpu=1:1; prlimit --pid $PPID --nofile=1:1; prlimit --pid $PPID --fsize=0",
    /not permitted[\s\S]*not permitted[\s\S]*not permitted/,
  ],
  "slows the daemon down": [
    "renice -n 19 -p $PPID; renice -n 19 -u 0; chrt -i -p 0 $PPID; taskset -p 1 $PPID; ionice -c 3 -p $PPID; ionice -c 3 -u 0",
    /(?:not permitted[\s\S]*){6}/,
  ],
  "traces the daemon": [
    `python3 -c 'import ctypes,os; l=ctypes.CDLL(None,use_errno=True); print(l.ptrace(16,os.getppid(),0,0), l.ptrace(16,int(os.environ.get("X","1")),0,0), os.strerror(ctypes.get_errno()))'`,
    /-1 -1 .*not permitted/i,
  ],
  "reads the memory of the daemon": [
    `python3 -c 'import ctypes,os; l=ctypes.CDLL(None,use_errno=True); print(l.process_vm_readv(int(os.popen("echo $PPID").read()),0,0,0,0,0)); print(l.syscall(438, l.syscall(434, os.getppid(), 0), 0, 0), os.strerror(ctypes.get_errno()))'`,
    /-1 /,
  ],
  mounts: ["mount -t tmpfs none . ; mount --bind / . ; umount /proc", /permitted|denied|superuser/],
  "makes namespaces": ["unshare -m true; unshare -n true; unshare -p true; nsenter -t 1 -n true", /not permitted|denied/i],
  "makes namespaces of a user": [
    "unshare -Ur sh -c 'mount -t tmpfs none . ; cat $CANARY; ip link add x type dummy; cat /proc/1/environ'",
    /denied|permitted|Read-only/,
  ],
  "makes devices": ["mknod disk b 8 0; mknod mem c 1 1; cat mem", /not permitted|denied/i],
  "enters a root": ["chroot . true; chroot / cat $CANARY", /not permitted|denied/i],
  "opens by handle": [
    `python3 -c 'import ctypes,os; l=ctypes.CDLL(None,use_errno=True); h=(ctypes.c_char*136)(); h[0]=128; m=ctypes.c_int(); r=l.name_to_handle_at(-100,b"$CANARY",h,ctypes.byref(m),0); print(r, l.open_by_handle_at(os.open("/usr/lib",0),h,0), os.strerror(ctypes.get_errno()))'`,
    /-1 .*not permitted/i,
  ],
  "becomes another user": ["su -c 'cat $CANARY'; sudo -n cat $CANARY", /./],
  "opens terminals of others": ["ls /dev/pts; for t in /dev/pts/*; do echo x > $t; done", /Permission denied/],
};

describe("a shell with all programs", () => {
  it.each(Object.entries(HELD_BACK))("is held back when it %s", async (_title, [line, told]) => {
    const command = line.replaceAll("$CANARY", confined.canary).replaceAll("$OUTSIDE", `${confined.base}/outside`);
    const { reason, output } = await confined.run("free", "Execute", command);
    expect([reason, output]).toEqual([undefined, expect.stringMatching(told)]);
    expectUntouched(output);
    expect((await confined.run("free", "Execute", "echo alive")).output).toBe("alive\n");
  });

  it.each(FACADES)("runs what it writes, and sees its own files alone, through %s", async (facade) => {
    const line = `printf '#!/bin/sh\\necho made\\n' > made-${facade}; chmod +x made-${facade}; ./made-${facade}; cat ${confined.canary}; pwd`;
    const { reason, output } = await confined.run("free", facade, line);
    expect([reason, output]).toEqual([undefined, expect.stringContaining("made\n")]);
    expect(output).toContain(confined.workspace);
    expectUntouched(output);
  });

  it("has git, make, python, pipes, substitutions, here-documents and a terminal", async () => {
    const line = `set -e; git init -q repo; cd repo; echo 'all: ; @echo built' > Makefile; make; git add .
git -c user.name=a -c user.email=b commit -qm first; git log --format=%s; python3 -c 'import json, ssl, subprocess; print(subprocess.check_output(["echo", "child"]).decode())'
cat <(echo substituted) - <<< "$(printf 'x%.0s' {1..70000})" | tail -c 5; echo; echo to-stdout > /dev/stdout; mktemp; nproc > /dev/null`;
    const { exitCode, output } = await confined.run("free", "Execute", line);
    expect(output).toContain("built\nfirst\nchild\n");
    expect(output).toContain("xxxx\n\nto-stdout\n".slice(0, 4));
    expect(output).toContain(`${confined.workspace}/tmp.`);
    expect([exitCode, output]).toEqual([0, output]);
    let shown = "";
    const request = { command: "tty; echo typed > /dev/tty; test -t 0 && stty size", pty: { cols: 90, rows: 30 } };
    for await (const { event } of confined.clients("free").process.start(request)) {
      if (event?.event.case === "output") shown += Buffer.from(event.event.value.output.value ?? []).toString();
    }
    expect(shown).toMatch(/^\/dev\/pts\/\d+\r\ntyped\r\n30 90\r\n$/);
  });

  it("sees what is made anew in place of what was granted", async () => {
    const again = `mv ${confined.workspace} ${confined.base}/old && mkdir ${confined.workspace} && echo anew > ${confined.workspace}/f`;
    expect(await confined.run("operator", "Execute", again)).toMatchObject({ exitCode: 0 });
    const { output } = await confined.run("free", "Execute", `cat f; cat ${confined.base}/old/made-Execute`);
    expect(output).toMatch(/^anew\n.*Permission denied/);
    // A link in its place grants nothing.
    const linked = `mv ${confined.workspace} ${confined.base}/older && ln -s ${confined.base}/outside ${confined.workspace}`;
    expect(await confined.run("operator", "Execute", linked)).toMatchObject({ exitCode: 0 });
    const caller = confined.clients("other").process;
    const { stdout, stderr } = await caller.execute({ command: `cat ${confined.workspace}/canary ${confined.canary}` });
    expectUntouched(stdout + stderr);
    await confined.run("operator", "Execute", `rm ${confined.workspace}; mv ${confined.base}/older ${confined.workspace}`);
    expect((await confined.run("free", "Execute", "cat f")).output).toBe("anew\n");
  });
});

describe("a network of its own", () => {
  it("reaches nothing of this machine: neither the daemon nor others, by no protocol", async () => {
    await using listener = await startListener();
    const { port } = confined.daemon;
    const script = `
import socket, sys
def attempt(name, f):
    try: print(name, "REACHED", f())
    except OSError as e: print(name, "no", e.errno)
attempt("daemon", lambda: socket.create_connection(("127.0.0.1", ${port}), 2))
attempt("listener", lambda: socket.create_connection(("127.0.0.1", ${listener.port}), 2))
attempt("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 2))
attempt("public", lambda: socket.create_connection(("1.1.1.1", 53), 2))
attempt("dns", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
`;
    for (const caller of ["free", "listed"]) {
      const { output, exitCode } = await confined.execute(caller, { argv: ["python3", "-c", script] });
      expect([exitCode, output]).toEqual([0, expect.not.stringContaining("REACHED")]);
    }
    expect(listener.connections()).toBe(0);
  });

  it("has one way out, which refuses what is not listed, whatever the request sets; that is logged and audited", async () => {
    await using listener = await startListener();
    const urls = ["evil.invalid/", "169.254.169.254/latest/", `127.0.0.1:${listener.port}/`, "[::1]/", "localhost/"];
    const lines = urls.map((url) => `curl -sS -m 10 http://${url}; curl -sS -m 10 https://${url}`).join("\n");
    const { output } = await confined.run("free", "Execute", `unset NO_PROXY no_proxy; ${lines}`);
    expect(output.match(/picod: .*allowed_domains does not have it/g)).toHaveLength(urls.length);
    expect(output.match(/CONNECT tunnel failed, response 403/g)).toHaveLength(urls.length);
    expect(output).not.toContain(CANARY);
    expect(listener.connections()).toBe(0);
    const line = await confined.daemon.waitForLog(({ msg }) => msg === "request out of a confined network refused");
    expect(line).toMatchObject({ capability: "free", why: expect.stringContaining("allowed_domains") });
    await eventually("it is audited", () => readFileSync(confined.audit, "utf8").includes("network_refused"));
    const refused = await confined.execute("free", { argv: ["env"], env: { HTTP_PROXY: "http://evil" } });
    expect(refused).toMatchObject({ reason: "POLICY_DENIED", metadata: { permission: "shell.env", subject: '"HTTP_PROXY"' } });
  });

  it("cannot fill the logs: what is refused too often is counted", async () => {
    const ask = `import socket
for _ in range(400):
    s = socket.create_connection(('127.0.0.1', 3128))
    s.sendall(b'GET http://flood.invalid/ HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')
    assert b'403' in s.recv(1000)`;
    const startedAt = performance.now();
    expect(await confined.execute("free", { argv: ["python3", "-c", ask] })).toMatchObject({ exitCode: 0, output: "" });
    const lines = () =>
      readFileSync(confined.audit, "utf8")
        .split("\n")
        .filter((line) => line.includes('"capability":"free"') && /network_refus/.test(line))
        .map((line) => JSON.parse(line));
    const audited = () => lines().filter(({ destination }) => destination === "http://flood.invalid/").length;
    const leftOut = () => lines().reduce((sum, { event, count }) => sum + (event === "network_refusals_left_out" ? count : 0), 0);
    await eventually(
      () => `all are listed or counted: ${audited()} and ${leftOut()}`,
      () => audited() > 0 && audited() + leftOut() === 400,
    );
    const seconds = Math.ceil((performance.now() - startedAt) / 1000) + 1;
    expect(audited()).toBeLessThanOrEqual(20 * seconds);
    const logged = () => confined.daemon.logs.filter(({ destination }) => destination === "http://flood.invalid/").length;
    const told = () =>
      confined.daemon.logs
        .filter(({ msg }) => msg === "requests out of a confined network refused and not listed")
        .reduce((sum, { count }) => sum + Number(count), 0);
    await eventually(
      () => `the log says the same: ${logged()} and ${told()}`,
      () => logged() === audited() && told() === leftOut(),
    );
  });

  it("keeps abstract sockets of others out", async () => {
    const script =
      "import socket; s=socket.socket(socket.AF_UNIX); s.bind('\\0picod-test-abstract'); s.listen(); print('ready', flush=True); input()";
    const owner = spawn("python3", ["-c", script], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      await once(owner.stdout, "data");
      const attempt = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0picod-test-abstract'); print('REACHED')";
      // In the network of the machine, where the name is known.
      for (const caller of ["other", "free"]) {
        const { output, exitCode } = await confined.execute(caller, {
          argv: ["python3", "-c", attempt],
          cwd: confined.workspace,
        });
        expect([exitCode, output]).toEqual([1, expect.stringMatching(/not permitted|refused/i)]);
      }
    } finally {
      owner.kill("SIGKILL");
    }
  });
});

describe("what a request may ask for", () => {
  it.each([
    [{ argv: ["ls"], env: { LD_PRELOAD: "x" } }, "shell.env", "LD_PRELOAD"],
    [{ argv: ["ls"], env: { PATH: "/tmp" } }, "shell.env", "PATH"],
    [{ argv: ["ls"], env: { BASH_ENV: "x" } }, "shell.env", "BASH_ENV"],
    [{ argv: ["ls"], env: { ci: "1" } }, "shell.env", "ci"],
    [{ argv: ["ls"], cwd: "/" }, "shell.working_directory", "/"],
    [{ argv: ["ls"], cwd: "../outside" }, "shell.working_directory", "outside"],
    [{ argv: ["ls"], timeout: 21 }, "limits.timeout_seconds", "21"],
    [{ argv: ["id"] }, "shell.allowed_commands", "id"],
    [{ argv: ["/bin/sh"] }, "shell.allowed_commands", "sh"],
    [{ argv: ["sh", "-c", "ls; id"] }, "shell.allowed_commands", "id"],
    [{ argv: ["./ls"] }, "shell.allowed_commands", "ls"],
    [{ argv: ["ls "] }, "shell.allowed_commands", "ls"],
  ])("is less than %j", async (request, permission, subject) => {
    const { reason, metadata } = await confined.execute("listed", request);
    expect([reason, metadata]).toEqual([
      "POLICY_DENIED",
      { capability: "listed", permission, subject: expect.stringContaining(subject) },
    ]);
  });

  it("is what the capability grants, resource limits included", async () => {
    const { output } = await confined.execute("listed", {
      argv: ["env"],
      env: { CI: "1", GIT_AUTHOR_NAME: "me" },
      limits: { openFiles: 50n },
    });
    expect(output).toMatch(/^CI=1$/m);
    expect(output).toMatch(/^GIT_AUTHOR_NAME=me$/m);
    expect(await confined.execute("listed", { argv: ["sleep", "0"], timeout: 0 })).toMatchObject({ exitCode: 0 });
  });

  it("is so many processes at once, of all who have the capability", async () => {
    const { process } = confined.clients("listed");
    const ids = ["a", "b", "c", "d"].map((name) => `many-${name}`);
    const streams = ids.map((id) => process.start({ argv: ["sleep", "100"], id })[Symbol.asyncIterator]());
    await Promise.all(streams.map((stream) => stream.next()));
    expect(await confined.execute("listed", { argv: ["ls"] })).toMatchObject({
      reason: "POLICY_LIMIT_REACHED",
      metadata: { capability: "listed", limit: "max_processes", value: "4" },
    });
    expect(await confined.run("free", "Execute", "echo others may")).toMatchObject({ exitCode: 0 });
    for (const id of ids) await process.deleteProcess({ process: { selector: { case: "id", value: id } }, stop: true });
    await Promise.all(streams.map((stream) => stream.return?.(undefined)));
    expect(await confined.execute("listed", { argv: ["ls"] })).toMatchObject({ exitCode: 0 });
  });
});

describe("a process of another capability", () => {
  it("is neither seen nor followed, typed at, signalled, stopped or forgotten", async () => {
    const { process: operator } = confined.clients("operator");
    const { process: free } = confined.clients("free");
    const started = operator
      .start({ command: "cat; exit 7", id: "of-operator", tag: "shell", stdin: true })
      [Symbol.asyncIterator]();
    await started.next();
    const target = { process: { selector: { case: "id" as const, value: "of-operator" } } };
    const byTag = { process: { selector: { case: "tag" as const, value: "shell" } } };
    const first = async (stream: AsyncIterable<unknown>) => {
      for await (const _ of stream) return;
    };
    const attempts: (() => Promise<unknown>)[] = [
      () => free.getProcess(target),
      () => free.getProcess(byTag),
      () => first(free.attach(target)),
      () => free.sendInput({ ...target, data: Buffer.from("x") }),
      () => free.closeInput(target),
      () => free.resizePty({ ...target, size: { cols: 1, rows: 1 } }),
      () => free.sendSignal({ ...target, signal: "KILL" }),
      () => free.updateProcess({ ...target, tag: "mine" }),
      () => free.stopProcess(target),
      () => free.deleteProcess({ ...target, stop: true }),
      () => free.acknowledgeOutput({ ...target, followerId: "x" }),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toThrow("started with another capability");
    await expect(free.getProcess(byTag)).rejects.toThrow('"tag shell": that process');
    await expect(first(free.start({ command: "cat; exit 7", id: "of-operator", stdin: true }))).rejects.toThrow(
      "capability differs",
    );
    const ofThatTag = await first(free.start({ command: "true", tag: "shell" })).catch((error: ConnectError) => error);
    expect(ofThatTag).toMatchObject({ rawMessage: "tag shell is in use" });
    expect(JSON.stringify(ofThatTag)).not.toContain("of-operator");
    expect((await free.listProcesses({})).processes.map(({ id }) => id)).not.toContain("of-operator");
    expect((await operator.listProcesses({})).processes.map(({ id }) => id)).toContain("of-operator");
    await operator.deleteProcess({ ...target, stop: true });
    await started.return?.(undefined);
  });

  it("does not hide one's own of that tag from E2B's clients", async () => {
    const [operator, listed, free] = ["operator", "listed", "free"].map((name) =>
      createClient(Envd, confined.clients(name).transport),
    ) as [Client<typeof Envd>, Client<typeof Envd>, Client<typeof Envd>];
    const process = { selector: { case: "tag" as const, value: "shared" } };
    const begin = async (client: Client<typeof Envd>) => {
      const command = { cmd: "sleep", args: ["100"] };
      const events = client.start({ process: command, tag: "shared" })[Symbol.asyncIterator]();
      await events.next();
      return events;
    };
    const first = await begin(listed);
    const own = await begin(free);
    await free.sendSignal({ process, signal: 9 });
    let last: unknown;
    for (let next = await own.next(); !next.done; next = await own.next()) last = next.value.event?.event.case;
    expect(last).toBe("end");
    // Its end is still told, whatever others start under that tag.
    const second = await begin(listed);
    const told: unknown[] = [];
    for await (const { event } of free.connect({ process })) told.push(event?.event.case);
    expect(told).toEqual(["start", "end"]);
    await expect(free.sendSignal({ process, signal: 9 })).rejects.toThrow("started with another capability");
    for (const _ of [first, second]) await operator.sendSignal({ process, signal: 9 });
    await Promise.all([first, second].map((events) => events.return?.(undefined)));
  });

  it("does not hide one's own of that tag that has ended", async () => {
    const [free, operator] = [confined.clients("free").process, confined.clients("operator").process];
    for (const [client, id] of [
      [free, "own-of-tag"],
      [operator, "later-of-tag"],
    ] as const) {
      for await (const _ of client.start({ command: "true", id, tag: "over" }));
    }
    const process = { selector: { case: "tag" as const, value: "over" } };
    for (const [client, id] of [
      [free, "own-of-tag"],
      [operator, "later-of-tag"],
    ] as const) {
      expect((await client.getProcess({ process })).process?.id).toBe(id);
    }
  });

  it("cannot be signalled by what is run", async () => {
    const { process: operator } = confined.clients("operator");
    const started = operator.start({ command: "exec sleep 100", id: "sleeper" })[Symbol.asyncIterator]();
    await started.next();
    const target = { process: { selector: { case: "id" as const, value: "sleeper" } } };
    const pid = (await operator.getProcess(target)).process?.pid;
    const { output } = await confined.run("free", "Execute", `kill -9 ${pid}; kill -0 ${pid}; sleep 100 & kill $! && echo own`);
    expect(output).toMatch(/not permitted[\s\S]*not permitted[\s\S]*own|own[\s\S]*not permitted/);
    expect((await operator.getProcess(target)).process?.state).toBe(1);
    await operator.deleteProcess({ ...target, stop: true });
    await started.return?.(undefined);
  });

  it("shares no memory with what is run", async () => {
    const made = await confined.run("operator", "Execute", "ipcmk -M 4096 -p 0666");
    const id = /\d+/.exec(made.output)?.[0];
    const attach = `import ctypes; l=ctypes.CDLL(None); l.shmat.restype=ctypes.c_long; print(l.shmat(${id}, None, 0))`;
    expect((await confined.execute("operator", { argv: ["python3", "-c", attach] })).output).not.toBe("-1\n");
    expect((await confined.execute("free", { argv: ["python3", "-c", attach] })).output).toBe("-1\n");
    await confined.run("operator", "Execute", `ipcrm -m ${id}`);
  });

  it("that outlives its call is confined as before, and is ended by StopProcess", async () => {
    const { process } = confined.clients("free");
    const line = `(while :; do cat ${confined.canary} >> found 2>/dev/null; echo tick >> ticks; sleep 0.05; done) & setsid sleep 1000 & echo left`;
    let id = "";
    for await (const { event } of process.start({ command: line }))
      if (event?.event.case === "started") id = event.event.value.process?.id ?? "";
    await eventually("it runs on", () => existsSync(`${confined.workspace}/ticks`));
    expect(readFileSync(`${confined.workspace}/found`, "utf8")).toBe("");
    const selector = { case: "id" as const, value: id };
    expect(await process.stopProcess({ process: { selector } })).toMatchObject({ survivingProcesses: 0 });
  });
});

describe("the daemon", () => {
  it("leaves no thread's descriptors open when it starts many commands", async () => {
    await confined.run("free", "Execute", "true");
    const before = confined.daemon.descriptors();
    for (let i = 0; i < 20; i++) await confined.run("free", "Execute", "true");
    for (let i = 0; i < 20; i++)
      for await (const _ of confined.clients("free").process.start({ command: "true", pty: { cols: 80, rows: 24 } }));
    // Two threads are kept for the next terminals, with an event loop each.
    const most = before + 16;
    await eventually(
      () => `${confined.daemon.descriptors()} descriptors, not ${most}`,
      () => confined.daemon.descriptors() <= most,
    );
  });

  it("answers others while many terminals are started at once", async () => {
    const { process } = confined.clients("free");
    let ended = 0;
    const terminals = Array.from({ length: 15 }, async () => {
      for await (const _ of process.start({ command: "true", pty: { cols: 80, rows: 24 } }));
      ended++;
    });
    const seen = new Set<number>();
    while (ended < terminals.length) {
      await fetch(`${confined.daemon.url}/health`);
      seen.add(ended);
    }
    await Promise.all(terminals);
    expect(seen.size).toBeGreaterThan(5);
  });

  it("gives commands nothing of its own whose mode they could change", async () => {
    const byDescriptor = "python3 -c 'import os; os.fchmod(0, 0o200)'";
    try {
      await confined.run("free", "Execute", `for fd in 0 1 2; do chmod 200 /proc/self/fd/$fd; done; ${byDescriptor}`);
      await confined.run("listed", "Start", `chmod 200 /dev/fd/0; ${byDescriptor}`);
      expect(statSync("/dev/null").mode & 0o777).toBe(0o666);
    } finally {
      chmodSync("/dev/null", 0o666);
    }
  });

  it("keeps no thread for every home directory that a caller names", async () => {
    chmodSync(confined.base, 0o755);
    const homes = new Map(
      readFileSync("/etc/passwd", "utf8")
        .split("\n")
        .map((line) => line.split(":"))
        .filter(([name]) => name)
        .map(([user, , , , , home]) => [home, user]),
    );
    // Debian has some 15.
    const threads = () => readdirSync(`/proc/${confined.daemon.pid}/task`).length;
    for (const user of homes.values())
      expect(await confined.execute("free", { argv: ["true"], user })).toMatchObject({ reason: undefined });
    const before = threads();
    for (const user of homes.values()) await confined.execute("other", { argv: ["true"], user });
    await eventually(
      () => `${threads()} threads after ${before}, of ${homes.size} homes`,
      () => threads() <= before + 3,
    );
  });

  it("takes a policy over while it runs, for commands that are started from then on", async () => {
    const path = `${confined.base}/policy.toml`;
    const policy = readFileSync(path, "utf8");
    writeFileSync(path, policy.replace('allowed_commands = ["ls", ', 'allowed_commands = ["id", "ls", '));
    await confined.daemon.waitForLog(({ msg }) => msg === "policy read again");
    expect((await confined.execute("listed", { argv: ["id", "-u"] })).output).toBe("0\n");
  });

  it("lets commands that run reach what a changed policy lists, and nothing when it has gone", async () => {
    const path = `${confined.base}/policy.toml`;
    const policy = readFileSync(path, "utf8");
    await using listener = await startListener();
    const { port } = listener;
    // It asks again and again, and tells when the answer is another one.
    const line = `last=; while :; do now=$(curl -sS -m 5 http://127.0.0.1:${port}/ --proxy $http_proxy 2>&1 --noproxy '' | head -c 60)
[ "$now" = "$last" ] || echo "$now"; last=$now; sleep 0.1; done`;
    const { process } = confined.clients("free");
    let told = "";
    const following = (async () => {
      for await (const { event } of process.start({ command: line, id: "asks" })) {
        if (event?.event.case === "output") told += Buffer.from(event.event.value.output.value ?? []).toString();
      }
    })();
    const count = () => confined.daemon.logs.filter(({ msg }) => msg === "policy read again").length;
    const change = async (text: string) => {
      const before = count();
      writeFileSync(path, text);
      await eventually("the policy is read again", () => count() > before);
    };
    await eventually(
      () => `it is refused, not ${told}`,
      () => /does not have it|picod: /.test(told),
    );
    expect(listener.connections()).toBe(0);
    await change(policy.replace('"example.invalid"', `"example.invalid", "127.0.0.1:${port}"`));
    await eventually(
      () => `it is let through, not ${told}`,
      () => listener.connections() > 0,
    );
    told = "";
    await change(policy);
    await eventually(
      () => `it is refused again, not ${told}`,
      () => told.includes("picod: "),
    );
    const selector = { case: "id" as const, value: "asks" };
    await process.deleteProcess({ process: { selector }, stop: true });
    await following.catch(() => undefined);
  });
});
