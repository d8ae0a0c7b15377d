import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { connectTo } from "./helpers/clients.js";
import { eventually } from "./helpers/eventually.js";
import { example } from "./helpers/example.js";
import { runPicod } from "./helpers/run-picod.js";
import { type Daemon, startDaemon, TOKEN } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";
import { askAs } from "./helpers/with-token.js";
import { call, create, view } from "./rpc/support/http-api.js";
import { ask } from "./rpc/support/http1.js";
import { followToEnd, selectId } from "./rpc/support/processes.js";

const STAT = "/picod.v1.FilesystemService/Stat";
const LIST = "/picod.v1.ProcessService/ListProcesses";
const SIGN = "/picod.v1.FilesystemService/CreateSignedUrl";
const NO_TOKEN = { env: {} };

function write(path: string, callers: readonly object[]): void {
  writeFileSync(path, JSON.stringify({ callers }), { mode: 0o600 });
}

const status = async (daemon: Daemon, token: string, path = STAT) => (await askAs(daemon, token, path, { path: "/" })).status;

describe("the scopes file", () => {
  it("lets in those whom it names, without a token of the daemon's own, and the log names them", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [{ name: "ci", token: "of-ci", scopes: ["files:read"] }]);
    await using daemon = await startDaemon({ ...NO_TOKEN, args: ["--scopes-file", path] });
    expect([await status(daemon, "of-ci"), await status(daemon, "of-ci", LIST), await status(daemon, TOKEN)]).toEqual([
      200, 403, 401,
    ]);
    const line = await daemon.waitForLog(({ procedure, code }) => procedure === STAT && code === "ok");
    expect(line).toMatchObject({ caller: "ci", how: "token" });
    expect(await daemon.waitForLog(({ code }) => code === "permission_denied")).toMatchObject({ caller: "ci", procedure: LIST });
    expect(JSON.stringify(daemon.logs)).not.toContain("of-ci");
  });

  it("is read again, by way of a link that Kubernetes swaps; a broken one changes nothing", async () => {
    using directory = temporaryDirectory();
    const root = directory.path;
    for (const version of ["v1", "v2", "v3"]) mkdirSync(`${root}/..${version}`);
    write(`${root}/..v1/scopes`, [{ name: "old", token: "old-token", scopes: ["files:read"] }]);
    write(`${root}/..v2/scopes`, [{ name: "new", token: "new-token", scopes: ["file:read"] }]);
    write(`${root}/..v3/scopes`, [{ name: "new", token: "new-token", scopes: ["files:read"] }]);
    symlinkSync("..v1", `${root}/..data`);
    symlinkSync("..data/scopes", `${root}/scopes`);
    const swap = (version: string) => {
      symlinkSync(`..${version}`, `${root}/..data_tmp`);
      renameSync(`${root}/..data_tmp`, `${root}/..data`);
    };
    await using daemon = await startDaemon({ ...NO_TOKEN, args: ["--scopes-file", `${root}/scopes`] });
    expect([await status(daemon, "old-token"), await status(daemon, "new-token")]).toEqual([200, 401]);
    swap("v2");
    const failure = await daemon.waitForLog(({ msg }) => msg.startsWith("cannot use the changed scopes file"));
    expect(failure.err).toMatchObject({ message: expect.stringContaining('callers[0] ("new"): scopes: "file:read" is none of') });
    expect(await status(daemon, "old-token")).toBe(200);
    swap("v3");
    await daemon.waitForLog(({ msg }) => msg === "scopes file read again");
    expect([await status(daemon, "old-token"), await status(daemon, "new-token")]).toEqual([401, 200]);
  });

  it("ends what expires", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    const expires = new Date(Date.now() - 1000).toISOString();
    write(path, [{ name: "ci", token: "of-ci", scopes: ["files:read"], expires }]);
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    const answer = await askAs(daemon, "of-ci", STAT, { path: "/" });
    expect(answer).toMatchObject({ status: 401, headers: { "www-authenticate": 'Bearer error="invalid_token"' } });
    expect(JSON.parse(answer.body)).toMatchObject({ message: `what ci has shown expired at ${expires}` });
  });

  it("refuses to start when it is broken or missing, and warns when everybody may read it", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    const run = () => runPicod(["--port", "0", "--scopes-file", path], { env: { PICOD_ACCESS_TOKEN: TOKEN } });
    expect(await run()).toMatchObject({
      ended: 2,
      stderr: `picod: cannot read the scopes from file ${path}: no such file or directory\n`,
    });
    write(path, [{ name: "ci", token: "of-ci", scopes: [] }]);
    const { ended, stderr } = await run();
    expect([ended, stderr]).toEqual([
      2,
      expect.stringContaining(`invalid scopes file ${path}: callers[0] ("ci"): scopes: expected`),
    ]);
    rmSync(path);
    writeFileSync(path, '{"callers": []}', { mode: 0o644 });
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    await daemon.waitForLog(({ level, msg }) => level === "warn" && msg.includes("chmod 600"));
  });

  it("counts for nothing where nobody is asked", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [{ name: "ci", token: "of-ci", scopes: ["files:read"] }]);
    await using daemon = await startDaemon({ ...NO_TOKEN, args: ["--scopes-file", path, "--insecure-no-auth"] });
    expect([await status(daemon, "of-ci", LIST), await status(daemon, "anything")]).toEqual([200, 200]);
  });

  it("is written as the documentation shows it", async () => {
    using directory = temporaryDirectory();
    const script = `${example("docs/authorization.md", "scopes-file")}\nprintf %s "$token"`;
    const token = execFileSync("sh", ["-ec", script], { cwd: directory.path, encoding: "utf8" });
    await using daemon = await startDaemon({ args: ["--scopes-file", `${directory.path}/scopes.json`] });
    expect((await askAs(daemon, "change-me", "/metrics", undefined, "GET")).status).toBe(200);
    const denied = await askAs(daemon, token, STAT, { path: "/etc/hostname" });
    expect([denied.status, denied.body]).toEqual([403, expect.stringContaining("permission denied")]);
    expect(daemon.logs.filter(({ level }) => level === "warn")).toEqual([]);
  });
});

describe("what is handed on", () => {
  it("by a ticket is what its owner may do, and the log names the owner", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [
      { name: "shell", token: "of-shell", scopes: ["process"] },
      { name: "reader", token: "of-reader", scopes: ["process:read", "files:read"] },
    ]);
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    expect((await askAs(daemon, "of-reader", "/v1/tickets")).status).toBe(403);
    const { ticket } = JSON.parse((await askAs(daemon, "of-shell", "/v1/tickets")).body);
    const id = await create(daemon, { command: "cat" });
    using viewer = await view(daemon, id, { query: `?ticket=${ticket}`, headers: {} });
    viewer.socket.send("hello\n");
    await viewer.shows("hello");
    viewer.socket.send('{"type":"close_input"}');
    await viewer.closed;
    const line = await daemon.waitForLog(({ procedure }) => procedure === "GET /v1/processes/{id}/connect");
    expect(line).toMatchObject({ caller: "shell", how: "ticket" });
  });

  it("by a signed URL is what its signer may do there", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [
      { name: "reader", token: "of-reader", scopes: ["files:read"], paths: [directory.path] },
      { name: "writer", token: "of-writer", scopes: ["files:write"] },
      { name: "confined", token: "of-confined", scopes: ["files:read"], paths: [] },
    ]);
    writeFileSync(`${directory.path}/file`, "content");
    symlinkSync("/etc/hostname", `${directory.path}/link`);
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    const sign = (token: string, name: string, method: string) =>
      askAs(daemon, token, SIGN, { path: `${directory.path}/${name}`, method });
    const { url } = JSON.parse((await sign("of-reader", "file", "GET")).body);
    expect(await ask(daemon, url)).toMatchObject({ status: 200, body: "content" });
    expect(await daemon.waitForLog(({ how }) => how === "signature")).toMatchObject({ caller: "reader" });
    // What the signer may not open the address does not open either.
    const { url: ofLink } = JSON.parse((await sign("of-reader", "link", "GET")).body);
    expect((await ask(daemon, ofLink)).status).toBe(403);
    const refused = await sign("of-reader", "file", "PUT");
    expect(refused.body).toContain("signing a PUT needs the scope files:write, which reader does not have");
    expect((await sign("of-writer", "file", "GET")).status).toBe(403);
    const { url: ofWriter } = JSON.parse((await sign("of-writer", "file", "PUT")).body);
    expect((await ask(daemon, ofWriter, { method: "PUT" }, "changed")).status).toBe(204);
    expect(readFileSync(`${directory.path}/file`, "utf8")).toBe("changed");
    expect((await sign("of-confined", "file", "GET")).body).toContain("confined to other paths");
    // With its signer goes what was signed.
    const { url: kept } = JSON.parse((await sign(TOKEN, "file", "GET")).body);
    write(path, [{ name: "writer", token: "of-writer", scopes: ["files:read"] }]);
    await daemon.waitForLog(({ msg }) => msg === "scopes file read again");
    expect(await ask(daemon, url)).toMatchObject({ status: 401, body: expect.stringContaining("reader is known no longer") });
    expect((await ask(daemon, ofWriter, { method: "PUT" }, "again")).status).toBe(403);
    expect((await ask(daemon, kept)).status).toBe(200);
  });

  it("by E2B's /init is what its caller may do", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [{ name: "orchestrator", token: "of-orchestrator", scopes: ["admin", "files:read"], paths: [directory.path] }]);
    writeFileSync(`${directory.path}/file`, "content");
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    const asE2b = (token: string, method: string, target: string, body?: object) =>
      ask(
        daemon,
        target,
        { method, headers: { "x-access-token": token, "content-type": "application/json" } },
        body && JSON.stringify(body),
      );
    // Its header takes PicoD's tokens, too.
    expect((await asE2b("of-orchestrator", "GET", `/files?path=${directory.path}/file`)).body).toBe("content");
    expect((await asE2b("of-orchestrator", "POST", "/init", { accessToken: "e2b" })).status).toBe(204);
    expect((await asE2b("e2b", "GET", `/files?path=${directory.path}/file`)).body).toBe("content");
    expect((await asE2b("e2b", "GET", "/files?path=/etc/hostname")).status).not.toBe(200);
    expect((await asE2b("e2b", "POST", `/files?path=${directory.path}/new`)).body).toContain("needs the scope files:write");
    expect((await asE2b("e2b", "POST", "/process.Process/Start", {})).body).toContain("needs the scope process");
    expect((await asE2b("e2b", "POST", "/picod.v1.FilesystemService/Stat", { path: "/" })).status).toBe(401);
    // What is taken from who has set it is taken from it.
    write(path, [{ name: "orchestrator", token: "of-orchestrator", scopes: ["admin"], paths: [directory.path] }]);
    await daemon.waitForLog(({ msg }) => msg === "scopes file read again");
    expect((await asE2b("e2b", "GET", `/files?path=${directory.path}/file`)).body).toContain("needs the scope files:read");
    // Whoever sends it again takes nothing over.
    expect((await asE2b(TOKEN, "POST", "/init", { accessToken: "e2b" })).status).toBe(204);
    expect((await asE2b("e2b", "POST", "/process.Process/Start", {})).body).toContain("needs the scope process");
  });
});

describe("looking on", () => {
  it("does not hold a process up", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/scopes.json`;
    write(path, [
      { name: "reader", token: "of-reader", scopes: ["process:read"] },
      { name: "both", token: "of-both", scopes: ["process:read", "process"] },
    ]);
    await using daemon = await startDaemon({ args: ["--scopes-file", path] });
    const id = await create(daemon, { command: "true" });
    for (const [token, backpressure, code] of [
      ["of-reader", true, Code.PermissionDenied],
      ["of-reader", false, undefined],
      ["of-both", true, undefined],
    ] as const) {
      await using clients = connectTo(daemon.url, { token });
      const following = followToEnd(clients.process.attach({ ...selectId(id), backpressure }));
      const ended = await following.catch((error: unknown) => ConnectError.from(error).code);
      if (code === undefined) expect(ended).toMatchObject({ ended: {} });
      else expect(ended).toBe(code);
    }
  });
});

describe("the daemon's own token", () => {
  it("opens everything beside a scopes file", async () => {
    using directory = temporaryDirectory();
    write(`${directory.path}/scopes.json`, []);
    await using daemon = await startDaemon({ args: ["--scopes-file", `${directory.path}/scopes.json`] });
    expect((await call(daemon, "GET", "/metrics")).status).toBe(200);
    expect([await status(daemon, TOKEN), await status(daemon, TOKEN, LIST)]).toEqual([200, 200]);
    await eventually("the log names it", () => daemon.logs.some(({ caller, how }) => caller === "daemon" && how === "token"));
  });
});
