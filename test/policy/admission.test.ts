import { generateKeyPairSync } from "node:crypto";
import { symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { runPicod } from "../helpers/run-picod.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { askAs } from "../helpers/with-token.js";
import { messages } from "../rpc/support/file-calls.js";
import { CALLERS, furnish, policyFor, SECRET, startWithPolicy } from "./support.js";

const STAT = "/picod.v1.FilesystemService/Stat";
const read = (daemon: Daemon, token: string, path: string) =>
  askAs(daemon, token, `/v1/files/${encodeURIComponent(path)}`, undefined, "GET");
const statusOf = async (daemon: Daemon, token: string, path: string) => (await askAs(daemon, token, STAT, { path })).status;
const exec = (daemon: Daemon, token: string) => askAs(daemon, token, "/picod.v1.ProcessService/Execute", { argv: ["true"] });

describe("while a policy is in force", () => {
  it("a caller has what its capability grants, and one without may do nothing but what is public", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    const statuses = async (path: string) =>
      Promise.all([TOKEN, "worker", "nothing", "without"].map((token) => statusOf(daemon, token, at(path))));
    expect(await statuses("in/file")).toEqual([200, 200, 403, 403]);
    expect(await statuses("out/secret")).toEqual([200, 403, 403, 403]);
    for (const [token, why] of [
      ["nothing", "the capability nothing of nothing does not grant filesystem.read"],
      ["without", "without has no capability"],
    ] as const) {
      const answer = await askAs(daemon, token, STAT, { path: at("in/file") }, "POST", { "connect-protocol-version": "1" });
      expect(JSON.parse(answer.body)).toMatchObject({
        code: "permission_denied",
        message: `${STAT} is denied by the policy: ${why}`,
        details: [{ debug: { reason: "POLICY_DENIED", domain: "picod", metadata: { subject: STAT } } }],
      });
    }
    expect((await exec(daemon, "worker")).body).toContain("the capability worker of worker does not grant shell");
    expect((await askAs(daemon, "without", "/healthz", undefined, "GET")).status).toBe(200);
    expect((await askAs(daemon, "without", "/metrics", undefined, "GET")).status).toBe(403);
    expect((await askAs(daemon, "nothing", "/metrics", undefined, "GET")).status).toBe(200);
    // The scopes say which calls, the capability what they may touch.
    const written = await askAs(daemon, "reader", `/v1/files/${encodeURIComponent(at("in/file"))}`, "x", "PUT");
    expect(written.body).toContain("needs the scope files:write, which reader does not have");
  });

  it("what is handed on carries the capability of whoever handed it on", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    const ofUrl = async (url: string) => (await fetch(`${daemon.url}${url}`)).status;
    for (const [token, inside, outside] of [
      ["worker", 200, undefined],
      [TOKEN, 200, 200],
    ] as const) {
      await using clients = connectTo(daemon.url, { token });
      const { url } = await clients.filesystem.createSignedUrl({ path: at("in/file") });
      expect(await ofUrl(url)).toBe(inside);
      expect(await ofUrl(url.replace("granted=worker", "granted=operator"))).toBe(token === "worker" ? 401 : 200);
      if (outside === undefined) {
        await expect(clients.filesystem.createSignedUrl({ path: at("out/secret") })).rejects.toMatchObject({
          code: Code.PermissionDenied,
        });
        // What it leads to when it is opened counts.
        const link = await clients.filesystem.createSignedUrl({ path: at("in/later") });
        symlinkSync(at("out/secret"), at("in/later"));
        expect(await ofUrl(link.url)).toBe(403);
      } else {
        expect(await ofUrl((await clients.filesystem.createSignedUrl({ path: at("out/secret") })).url)).toBe(outside);
      }
    }
    const init = { accessToken: "of-e2b" };
    expect((await askAs(daemon, "worker", "/init", init)).status).toBe(204);
    const e2b = async (path: string) =>
      (await fetch(`${daemon.url}/files?path=${at(path)}`, { headers: { "x-access-token": "of-e2b" } })).status;
    expect([await e2b("in/file"), await e2b("out/secret")]).toEqual([200, 403]);
    const { ticket } = JSON.parse((await askAs(daemon, TOKEN, "/v1/tickets", {})).body);
    expect(ticket).toMatch(/./);
    expect((await askAs(daemon, "worker", "/v1/tickets", {})).status).toBe(403);
  });

  it("a change counts from the next request on, on open connections too; a broken one changes nothing", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    await using clients = connectTo(daemon.url, { token: "worker" });
    const { filesystem } = clients;
    const change = async (policy: string, message: string) => {
      writeFileSync(at("policy.toml"), policy);
      await daemon.waitForLog(({ msg }) => msg === message);
      return daemon.logs.splice(0);
    };
    const codeOf = (path: string) =>
      filesystem.stat({ path: at(path) }).then(
        () => "ok",
        (error: unknown) => Code[ConnectError.from(error).code],
      );
    expect([await codeOf("in/file"), await codeOf("out/secret")]).toEqual(["ok", "PermissionDenied"]);
    // A call that has begun goes on as it was begun.
    let send: () => void = () => undefined;
    const whole = new Promise<void>((resolve) => {
      send = resolve;
    });
    const begun = filesystem.writeFile(
      (async function* () {
        yield { request: { case: "metadata" as const, value: { path: at("in/begun") } } };
        await whole;
        yield { request: { case: "chunk" as const, value: Buffer.from("all of it") } };
      })(),
    );
    begun.catch(() => undefined);
    const broken = "cannot use the changed policy; what it said before stays in force";
    expect(JSON.stringify(await change("[capabilities.worker", broken))).toContain("invalid policy file");
    expect(await codeOf("in/file")).toBe("ok");
    const without = await change(policyFor(base.path).replaceAll("capabilities.worker", "capabilities.other"), broken);
    expect(JSON.stringify(without)).toContain("the scopes file names the capability worker");
    expect(await codeOf("in/file")).toBe("ok");
    const uploading = { path: at("in/upload"), uploadId: "up", offset: 0n };
    await filesystem.writeFile(messages({ request: { case: "metadata", value: uploading } }));
    await change(policyFor(base.path).replaceAll("/in/**", "/out/**"), "policy read again");
    expect([await codeOf("in/file"), await codeOf("out/secret")]).toEqual(["PermissionDenied", "ok"]);
    send();
    await expect(begun).resolves.toMatchObject({ bytesWritten: 9n });
    // What was begun under other rules is nobody's any more.
    await expect(filesystem.commitUpload({ uploadId: "up" })).rejects.toMatchObject({ code: Code.NotFound });
  });

  it("the limit of a file's size is answered with its name and value", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const policy = policyFor(base.path, "[capabilities.worker.limits]\nmax_file_size_bytes = 3\n");
    await using daemon = await startWithPolicy(base.path, policy);
    const path = encodeURIComponent(`${base.path}/in/big`);
    const answer = await askAs(daemon, "worker", `/v1/files/${path}`, "four", "PUT");
    expect([answer.status, answer.body]).toEqual([413, expect.stringContaining("larger than max_file_size_bytes 3")]);
    const e2b = await askAs(daemon, "worker", `/files?path=${path}`, "four", "POST", {
      "content-type": "application/octet-stream",
    });
    expect([e2b.status, e2b.body]).toEqual([413, expect.stringContaining("larger than max_file_size_bytes 3")]);
    expect((await askAs(daemon, "worker", `/v1/files/${path}`, "tri", "PUT")).status).toBe(204);
  });

  it("callers of a scopes file with paths have what both grant", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const both = { name: "both", token: "both", scopes: ["files:read"], paths: [`${base.path}/in/deep`], capability: "worker" };
    writeFileSync(`${base.path}/policy.toml`, policyFor(base.path));
    writeFileSync(`${base.path}/more.json`, JSON.stringify({ callers: [both] }), { mode: 0o600 });
    await using daemon = await startDaemon({
      args: ["--policy", `${base.path}/policy.toml`, "--scopes-file", `${base.path}/more.json`],
    });
    expect((await read(daemon, "both", `${base.path}/in/deep/file`)).status).toBe(200);
    expect((await read(daemon, "both", `${base.path}/in/file`)).status).toBe(403);
    expect((await read(daemon, "both", `${base.path}/out/secret`)).status).toBe(403);
  });

  it("nobody who comes in without a token has anything but what no_auth names", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const path = `${base.path}/policy.toml`;
    const args = ["--insecure-no-auth", "--policy", path];
    for (const [policy, expected] of [
      [policyFor(base.path), [403, 403]],
      [`no_auth = "worker"\n${policyFor(base.path)}`, [200, 403]],
    ] as const) {
      writeFileSync(path, policy);
      await using daemon = await startDaemon({ args, env: {} });
      const got = [await statusOf(daemon, "", `${base.path}/in/file`), await statusOf(daemon, "", `${base.path}/out/secret`)];
      expect(got).toEqual(expected);
    }
  });
});

describe("the capability that a JWT names", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const sign = (claims: object) =>
    new SignJWT({ sub: "agent", scope: "files:read", ...claims })
      .setProtectedHeader({ alg: "EdDSA" })
      .setAudience("here")
      .setExpirationTime("5m")
      .sign(privateKey);

  it("is what it has; one that the policy does not have makes it worthless", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const key = `${base.path}/key.pem`;
    writeFileSync(key, publicKey.export({ type: "spki", format: "pem" }));
    const args = ["--jwt-public-key", key, "--jwt-audience", "here"];
    const file = `${base.path}/in/file`;
    {
      await using daemon = await startWithPolicy(base.path, policyFor(base.path), args);
      expect(await statusOf(daemon, await sign({ picod_capability: "worker" }), file)).toBe(200);
      expect((await read(daemon, await sign({ picod_capability: "worker" }), `${base.path}/out/secret`)).body).not.toContain(
        SECRET,
      );
      expect(await statusOf(daemon, await sign({}), file)).toBe(403);
      const unknown = await askAs(daemon, await sign({ picod_capability: "gone" }), STAT, { path: file });
      expect([unknown.status, unknown.body]).toEqual([401, expect.stringContaining('there is no capability \\"gone\\"')]);
      expect(await statusOf(daemon, await sign({ picod_capability: 1 }), file)).toBe(401);
    }
    await using free = await startDaemon({ args });
    expect(await statusOf(free, await sign({}), file)).toBe(200);
    expect(await statusOf(free, await sign({ picod_capability: "worker" }), file)).toBe(401);
  });
});

/** What an old kernel, or a filter around a container, looks like: openat2(2) fails with ENOSYS. */
const WITHOUT_OPENAT2 = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
step = lambda code, k, true=0, false=0: struct.pack("HBBI", code, true, false, k)
program = ctypes.create_string_buffer(step(0x20, 0) + step(0x15, 437, 0, 1) + step(0x06, 0x00050026) + step(0x06, 0x7fff0000))
class Filter(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(program))), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
`;

describe("the log", () => {
  it("tells of what grants nothing: a glob through a link, a caller without a capability", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    symlinkSync("in", `${base.path}/way`);
    const policy = policyFor(base.path).replace(`read_paths = ["${base.path}/in/**"]`, `read_paths = ["${base.path}/way/**"]`);
    await using daemon = await startWithPolicy(base.path, policy);
    const way = `${base.path}/way/** of the capability worker grants nothing: ${base.path}/way is really ${base.path}/in`;
    await daemon.waitForLog(({ level, msg }) => level === "warn" && msg.startsWith(way));
    await daemon.waitForLog(({ level, msg }) => level === "warn" && msg.endsWith("while there is a policy: without"));
    expect(await statusOf(daemon, "worker", `${base.path}/way/file`)).toBe(403);
  });
});

describe("picod does not start", () => {
  it("where the kernel cannot say where paths lead", async () => {
    using base = temporaryDirectory();
    const policy = `${base.path}/policy.toml`;
    writeFileSync(policy, "");
    const options = { env: { PICOD_ACCESS_TOKEN: TOKEN }, wrapper: ["python3", "-c", WITHOUT_OPENAT2] };
    const { ended, stderr } = await runPicod(["--port", "0", "--policy", policy], options);
    expect([ended, stderr]).toEqual([
      2,
      expect.stringContaining(`the policy ${policy} cannot be enforced: openat2(2) is missing`),
    ]);
  });

  it("with a policy, or a reference to one, that cannot be used, and says why", async () => {
    using base = temporaryDirectory();
    const [policy, scopes] = [`${base.path}/policy.toml`, `${base.path}/scopes.json`];
    writeFileSync(scopes, JSON.stringify({ callers: CALLERS }), { mode: 0o600 });
    const run = async (...args: string[]) => {
      const { ended, stderr } = await runPicod(["--port", "0", ...args], { env: { PICOD_ACCESS_TOKEN: TOKEN } });
      expect(ended).toBe(2);
      return stderr;
    };
    expect(await run("--policy", policy)).toContain(`cannot read the policy from file ${policy}: no such file`);
    writeFileSync(policy, "[capabilities.worker.permissions.filesystem]\nread_path = []\n");
    expect(await run("--policy", policy)).toContain(
      `invalid policy file ${policy}: [capabilities.worker.permissions.filesystem] read_path: there is no such key`,
    );
    writeFileSync(policy, "");
    expect(await run("--policy", policy, "--scopes-file", scopes)).toContain(
      'worker has the capability "worker", and the policy has none',
    );
    expect(await run("--scopes-file", scopes)).toContain('worker has the capability "worker", and --policy is missing');
  });
});
