import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Process } from "../../src/gen/envd/process/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "./support/http1.js";

const UNAUTHORIZED = `${JSON.stringify({
  code: 401,
  message: "unauthorized access, please provide a valid access token or method signing if supported",
})}\n`;
const BEARER = { authorization: `Bearer ${TOKEN}` };
const STAT = "/filesystem.Filesystem/Stat";

function init(daemon: Daemon, body: object | string, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const length = { "content-length": String(Buffer.byteLength(text)) };
  return ask(daemon, "/init", { method: "POST", headers: { ...headers, ...length } }, text);
}

function stat(daemon: Daemon, headers: Record<string, string>) {
  const body = '{"path":"/"}';
  const all = { "content-type": "application/json", "content-length": String(body.length), ...headers };
  return ask(daemon, STAT, { method: "POST", headers: all }, body);
}

function signed(path: string, operation: "read" | "write", token: string, expiration?: number): string {
  const text = [path, operation, "", token, ...(expiration === undefined ? [] : [expiration])].join(":");
  const signature = `v1_${createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;
  const more = expiration === undefined ? "" : `&signature_expiration=${expiration}`;
  return `/files?path=${encodeURIComponent(path)}&signature=${encodeURIComponent(signature)}${more}`;
}

describe("a daemon with a token of its own", () => {
  it("opens nothing of E2B's until it is shown that token", async () => {
    await using daemon = await startDaemon();
    for (const path of ["/files", "/files/compose", "/envs", "/init", "/process.Process/List", STAT]) {
      for (const method of ["GET", "POST"]) {
        const answer = await ask(daemon, path, { method, headers: { "x-access-token": "wrong" } });
        expect.soft(answer, `${method} ${path}`).toMatchObject({ status: 401, body: UNAUTHORIZED });
      }
    }
    // Of both; while E2B has no token it is refused in PicoD's words.
    expect(await ask(daemon, "/metrics")).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer" } });
    expect(await init(daemon, { accessToken: "mine" })).toMatchObject({ status: 401 });
    expect(await stat(daemon, BEARER)).toMatchObject({ status: 200 });
    expect(await stat(daemon, { "x-access-token": TOKEN })).toMatchObject({ status: 200 });
    const preflight = { origin: "https://example.com", "access-control-request-method": "POST" };
    expect(await ask(daemon, STAT, { method: "OPTIONS", headers: preflight })).toMatchObject({ status: 204 });
  });

  it("takes E2B's token from whoever has its own, and opens nothing else for it", async () => {
    await using daemon = await startDaemon();
    expect(await init(daemon, { accessToken: "theirs" }, BEARER)).toMatchObject({ status: 204 });
    expect(await stat(daemon, { "x-access-token": "theirs" })).toMatchObject({ status: 200 });
    expect(await stat(daemon, { "x-access-token": "other" })).toMatchObject({ status: 401, body: UNAUTHORIZED });
    expect(await ask(daemon, "/v1/processes", { headers: { "x-access-token": "theirs" } })).toMatchObject({ status: 401 });
  });
});

describe("/init", () => {
  it("has its own rules", async () => {
    await using daemon = await startDaemon({ args: ["--insecure-no-auth"], env: {} });
    const version = { "x-envd-version": "0.6.13" };
    expect(await init(daemon, "")).toMatchObject({ status: 204, headers: version });
    for (const bad of ["{", "[]", { accessToken: "" }, { accessToken: 1 }, { envVars: { a: 1 } }, { timestamp: "noon" }]) {
      expect(await init(daemon, bad), JSON.stringify(bad)).toMatchObject({ status: 400, body: "", headers: version });
    }
    const [later, earlier] = ["2026-01-01T00:00:00.000000002Z", "2026-01-01T00:00:00.000000001Z"];
    expect(await init(daemon, { accessToken: "mine", envVars: { A: "1" }, timestamp: later })).toMatchObject({ status: 204 });
    expect(await init(daemon, {})).toMatchObject({ status: 401, body: "access token reset not authorized", headers: version });
    expect(await init(daemon, { accessToken: "x" })).toMatchObject({ status: 401, body: "access token validation failed" });
    expect(await init(daemon, { accessToken: "mine", envVars: { B: "2" }, timestamp: earlier })).toMatchObject({ status: 204 });
    const envs = async () => JSON.parse((await ask(daemon, "/envs", { headers: { "x-access-token": "mine" } })).body);
    expect(await envs()).toEqual({ A: "1", E2B_SANDBOX: "false" });
    await init(daemon, { accessToken: "mine", envVars: { C: "3" }, defaultUser: "nobody" });
    expect(await envs()).toEqual({ C: "3", E2B_SANDBOX: "false" });
  });
});

describe("what /init sets for commands", () => {
  it("is in their environment, except for what says where they run", async () => {
    await using daemon = await startDaemon({ args: ["--insecure-no-auth", "--env", "E2B_SANDBOX=flag"], env: {} });
    await init(daemon, { envVars: { A: "set", E2B_SANDBOX: "true", E2B_OTHER: "set" } });
    expect(JSON.parse((await ask(daemon, "/envs")).body)).toEqual({ A: "set", E2B_SANDBOX: "false", E2B_OTHER: "set" });
    await using clients = connectTo(daemon.url, { protocol: "Connect over HTTP/1.1", token: null });
    const printed = async (envs: Record<string, string>) => {
      const command = ["-c", "echo $A $E2B_SANDBOX $E2B_OTHER"];
      let text = "";
      const { start } = createClient(Process, clients.transport);
      for await (const { event } of start({ process: { cmd: "/bin/sh", args: command, envs } })) {
        if (event?.event.case === "data") text += Buffer.from(event.event.value.output.value ?? []).toString();
      }
      return text;
    };
    expect(await printed({})).toBe("set false set\n");
    expect(await printed({ A: "own", E2B_SANDBOX: "own" })).toBe("own own set\n");
  });
});

describe("signed addresses of files", () => {
  it("open one file for one operation, until they expire", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--insecure-no-auth"], env: {} });
    await init(daemon, { accessToken: "picod-test-token" });
    const path = `${directory.path}/file`;
    writeFileSync(path, "content");
    const refused = async (url: string, message: string, headers: Record<string, string> = {}) =>
      expect(await ask(daemon, url, { headers })).toMatchObject({
        status: 401,
        body: `${JSON.stringify({ code: 401, message })}\n`,
      });
    const now = Math.floor(Date.now() / 1000);
    const right = signed(path, "read", "picod-test-token", now + 60);
    expect(await ask(daemon, right)).toMatchObject({ status: 200, body: "content" });
    expect(await ask(daemon, right.replace("expiration=", "expiration=00"))).toMatchObject({ status: 200 });
    expect(await ask(daemon, `/files?path=${path}`, { headers: { "x-access-token": "picod-test-token" } })).toMatchObject({
      status: 200,
    });
    await refused(`/files?path=${path}`, "missing signature query parameter");
    await refused(right, "access token present in header but does not match", { "x-access-token": "wrong" });
    await refused(signed(path, "write", "picod-test-token"), "invalid signature");
    await refused(signed(path, "read", "other"), "invalid signature");
    await refused(right.replace(String(now + 60), String(now + 61)), "invalid signature");
    await refused(signed(path, "read", "picod-test-token", now - 1), "signature is already expired");
    await refused("/files?path=a&signature=", "invalid signature");
    const vector = "v1_%2FyO1NUQZWvf0ErPMVhROMADAgdV1PgkOsIue%2FcDT4b8";
    expect(await ask(daemon, `/files?path=notes/a.txt&username=user&signature=${vector}`)).toMatchObject({
      body: expect.not.stringContaining("invalid signature"),
    });
    expect(await ask(daemon, "/files/compose", { method: "POST" })).toMatchObject({ status: 401, body: UNAUTHORIZED });
    expect(await ask(daemon, "/health")).toMatchObject({ status: 200 });
  });
});
