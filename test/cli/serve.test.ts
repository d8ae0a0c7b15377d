import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { runPicod } from "../helpers/run-picod.js";
import { PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const env = { PICOD_ACCESS_TOKEN: TOKEN };

describe("picod", () => {
  it("answers on its port as soon as it says that it listens", async () => {
    await using daemon = await startDaemon();
    const response = await fetch(`${daemon.url}/healthz`);
    expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
  });

  it("says in one line that its port is taken, with exit code 1", async () => {
    await using daemon = await startDaemon();
    const { ended, stderr } = await runPicod(["--host", "127.0.0.1", "--port", String(daemon.port)], { env });
    expect(stderr).toBe(`picod: cannot listen on 127.0.0.1 port ${daemon.port}: address already in use\n`);
    expect(ended).toBe(1);
  });

  it("says in one line that the address is not one of this machine, with exit code 1", async () => {
    const { ended, stderr } = await runPicod(["--host", "192.0.2.1", "--port", "0"], { env });
    expect(stderr).toBe("picod: cannot listen on 192.0.2.1 port 0: address not available\n");
    expect(ended).toBe(1);
  });

  it.each([
    ["--root", "PICOD_ROOT", "/nonexistent", "/nonexistent: no such file or directory"],
    ["--root", "PICOD_ROOT", "/etc/passwd", "/etc/passwd: not a directory"],
    ["--shell", "PICOD_SHELL", "/nonexistent/sh", "/nonexistent/sh: no such file or directory"],
    ["--shell", "PICOD_SHELL", "/etc/passwd", "/etc/passwd: permission denied"],
    ["--user", "PICOD_USER", "nobody-of-this-name", 'no such user: "nobody-of-this-name"'],
  ])("refuses %s (%s) %s with exit code 2 and one line", async (flag, variable, value, why) => {
    const { ended, stderr } = await runPicod(["--port", "0", flag, value], { env });
    expect(stderr).toBe(`picod: invalid value for ${flag} (variable ${variable}): ${why}\n`);
    expect(ended).toBe(2);
  });

  it("takes its settings from the environment", async () => {
    await using daemon = await startDaemon({
      env: { ...env, PICOD_ENV: "GREETING=hello\nNAME=world", PICOD_DEFAULT_TIMEOUT: "300ms" },
    });
    await using clients = connectTo(daemon.url);
    expect((await clients.process.execute({ command: 'echo "$GREETING $NAME"' })).stdout).toBe("hello world\n");
    expect((await clients.process.execute({ command: "sleep 10" })).exitCode).toBe(124);
  });

  it("keeps running when the directory that it was started in is removed", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({
      wrapper: ["sh", "-c", `mkdir ${directory.path}/gone && cd ${directory.path}/gone && exec "$@"`, "sh"],
    });
    await using clients = connectTo(daemon.url);
    expect(await clients.process.execute({ command: `rmdir ${directory.path}/gone && pwd`, cwd: "/" })).toMatchObject({
      stdout: "/\n",
    });
  });

  it("starts by a relative path through a symbolic link", async () => {
    using directory = temporaryDirectory();
    symlinkSync(PICOD, `${directory.path}/linked`);
    await using daemon = await startDaemon({
      wrapper: ["sh", "-c", `cd ${directory.path} && shift && exec ./linked "$@"`, "sh"],
    });
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  });

  it.each([
    ["missing", undefined],
    ["somebody else's", "not a code cache"],
  ])("starts when its code cache is %s", async (_case, cache) => {
    using directory = temporaryDirectory();
    for (const name of ["picod", "picod.cjs"]) copyFileSync(join(dirname(PICOD), name), join(directory.path, name));
    for (const name of ["node", "node_modules", "daemon.cjs"])
      symlinkSync(join(dirname(PICOD), name), join(directory.path, name));
    if (cache !== undefined) writeFileSync(`${directory.path}/daemon.cache`, cache);
    await using daemon = await startDaemon({ wrapper: ["sh", "-c", `shift && exec ${directory.path}/picod "$@"`, "sh"] });
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  });

  it("passes none of its own descriptors and limits on to commands", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/secret`, "secret");
    const wrapper = ["sh", "-c", `ulimit -Sn 777 && exec "$@" 9<${directory.path}/secret`, "sh"];
    await using daemon = await startDaemon({ wrapper });
    expect(readFileSync(`/proc/${daemon.pid}/fd/9`, "utf8")).toBe("secret");
    await using clients = connectTo(daemon.url);
    const { stdout } = await clients.process.execute({ command: "ulimit -Sn; ls /proc/self/fd | tr '\\n' ' '" });
    expect(stdout).toBe("777\n0 1 2 3 ");
  });
});

describe("picod healthcheck", () => {
  it("exits with 0 when the daemon answers", async () => {
    await using daemon = await startDaemon();
    expect(await runPicod(["healthcheck", "--port", String(daemon.port)])).toEqual({ ended: 0, stdout: "", stderr: "" });
  });

  it("respects PICOD_PORT and PICOD_HOST", async () => {
    await using daemon = await startDaemon({ args: ["--host", "127.0.0.2"] });
    const PICOD_PORT = String(daemon.port);
    expect(await runPicod(["healthcheck"], { env: { PICOD_PORT, PICOD_HOST: "127.0.0.2" } })).toMatchObject({ ended: 0 });
    expect(await runPicod(["healthcheck"], { env: { PICOD_PORT } })).toMatchObject({ ended: 1 });
  });

  it.each(["0.0.0.0", "::"])("finds a daemon that listens on %s", async (host) => {
    await using daemon = await startDaemon({ args: ["--host", host] });
    expect(await runPicod(["healthcheck", "--host", host, "--port", String(daemon.port)])).toMatchObject({ ended: 0 });
  });

  it("exits with 1 and one line when nobody listens", async () => {
    const { ended, stdout, stderr } = await runPicod(["healthcheck", "--port", "1"]);
    expect(stderr).toMatch(/^picod: healthcheck of 127\.0\.0\.1 port 1: connect ECONNREFUSED .*\n$/);
    expect([ended, stdout]).toEqual([1, ""]);
  });

  it("exits with 1 when the daemon is there but hangs", async () => {
    await using daemon = await startDaemon();
    await stopped(daemon.pid, async () => {
      const { ended, stderr } = await runPicod(["healthcheck", "--port", String(daemon.port)]);
      expect([ended, stderr]).toEqual([1, `picod: healthcheck of 127.0.0.1 port ${daemon.port}: no answer within 3000 ms\n`]);
    });
  });

  it("does not show the token that it has from its container", async () => {
    await using daemon = await startDaemon();
    await stopped(daemon.pid, async () => {
      const child = spawn(PICOD, ["healthcheck", "--port", String(daemon.port)], { env: { PATH: process.env.PATH, ...env } });
      const environ = () => readFileSync(`/proc/${child.pid}/environ`, "latin1");
      // What the launcher adds is there once it has become Node.
      await eventually("the check runs", () => environ().includes("PICOD_SOFT_OPEN_FILES="));
      expect(environ()).not.toContain(TOKEN);
      child.kill();
      await once(child, "exit");
    });
  });

  it("exits with 1 when somebody else listens there", async () => {
    const other = createServer((_request, response) => response.writeHead(404).end()).listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const { ended, stderr } = await runPicod(["healthcheck", "--port", String(port)]);
    other.close();
    expect([ended, stderr]).toEqual([1, `picod: healthcheck of 127.0.0.1 port ${port}: /healthz answered 404\n`]);
  });
});

/** Runs while that process is stopped: its kernel accepts connections, and nobody answers. */
async function stopped(pid: number, run: () => Promise<void>): Promise<void> {
  process.kill(pid, "SIGSTOP");
  try {
    await run();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
