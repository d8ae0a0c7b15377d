import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { realpathSync } from "node:fs";
import { type JWTPayload, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { PYTHON_CLIENT_MS, runPythonClient } from "./python-client.js";

const PEM = { type: "spki", format: "pem" } as const;
const router = generateKeyPairSync("rsa", { modulusLength: 2048 });
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
const publicKey = router.publicKey.export(PEM).toString();
const now = () => Math.floor(Date.now() / 1000);

/** What AgentCube's router sends. */
function sign(claims: Record<string, unknown> = {}, key: KeyObject = router.privateKey, alg = "RS256"): Promise<string> {
  const all = { iss: "agentcube-router", iat: now(), exp: now() + 300, path: "/api/execute", ...claims };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return new SignJWT(kept).setProtectedHeader({ alg, typ: "JWT" }).sign(key);
}

function unsigned(claims: JWTPayload): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none", typ: "JWT" })}.${part(claims)}.`;
}

async function execute(daemon: Daemon, authorization: string | undefined) {
  const headers = authorization === undefined ? {} : { authorization };
  const body = JSON.stringify({ command: ["echo", "in"] });
  const answer = await fetch(`${daemon.url}/api/execute`, { method: "POST", headers, body });
  // biome-ignore lint/suspicious/noExplicitAny: what it should hold is what the tests are about.
  return { status: answer.status, json: (await answer.json()) as any };
}

describe("AgentCube's client", () => {
  it("works with every method, and the RPCs serve the same sandbox", { timeout: PYTHON_CLIENT_MS }, async () => {
    using directory = temporaryDirectory();
    const workspace = `${realpathSync(directory.path)}/workspace`;
    const env = { PICOD_AUTH_PUBLIC_KEY: publicKey, PICOD_ACCESS_TOKEN: TOKEN };
    await using daemon = await startDaemon({ args: ["--workspace", workspace], env });
    await runPythonClient("agentcube_client.py", daemon.url, await sign(), workspace);
    await using clients = connectTo(daemon.url);
    const { stdout } = await clients.process.execute({ command: "cat notes/absolute.txt", cwd: workspace });
    expect(stdout).toBe("absolute");
  });
});

describe("a token of AgentCube's router", () => {
  it("opens the routes below /api/ and nothing else", async () => {
    await using daemon = await startDaemon({ env: { PICOD_AUTH_PUBLIC_KEY: publicKey } });
    expect(await execute(daemon, `Bearer ${await sign()}`)).toMatchObject({ status: 200, json: { stdout: "in\n" } });
    const headers = { authorization: `Bearer ${await sign()}` };
    for (const path of ["/v1/processes", "/v1/files/etc/hostname", "/metrics"]) {
      expect((await fetch(daemon.url + path, { headers })).status, path).toBe(401);
    }
    await using clients = connectTo(daemon.url, { token: await sign() });
    await expect(clients.process.execute({ command: "true" })).rejects.toThrow("access token");
    expect((await fetch(`${daemon.url}/health`)).status).toBe(200);
  });

  it("is refused in the words of the contract", async () => {
    await using daemon = await startDaemon({ env: { PICOD_AUTH_PUBLIC_KEY: publicKey } });
    expect(await execute(daemon, undefined)).toEqual({
      status: 401,
      json: { error: "Missing Authorization header", detail: "Request requires JWT authentication", code: 401 },
    });
    for (const header of ["Basic eDp5", "Bearer", "Bearer a b", await sign()]) {
      expect(await execute(daemon, header), header).toEqual({
        status: 401,
        json: { error: "Invalid Authorization header format", detail: "Use Bearer <token>", code: 401 },
      });
    }
    expect(await execute(daemon, "Bearer nonsense")).toEqual({
      status: 401,
      json: { error: "Invalid token", detail: expect.stringMatching(/^JWT verification failed: ./), code: 401 },
    });
  });

  it("is not taken when it is not what it should be", async () => {
    await using daemon = await startDaemon({ env: { PICOD_AUTH_PUBLIC_KEY: publicKey } });
    const secret = new TextEncoder().encode(publicKey);
    const claims = { iat: now(), exp: now() + 300 };
    const good = await sign();
    const [header = "", , signature = ""] = good.split(".");
    const other = Buffer.from(JSON.stringify({ ...claims, exp: now() + 9999 })).toString("base64url");
    const tokens: Record<string, string> = {
      "of another key": await sign({}, stranger.privateKey),
      "that has expired": await sign({ iat: now() - 600, exp: now() - 120 }),
      "without an end": await sign({ exp: undefined }),
      "of the future": await sign({ iat: now() + 120 }),
      "not valid yet": await sign({ nbf: now() + 120 }),
      unsigned: unsigned(claims),
      "with the public key as a secret": await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(secret),
      "with other claims": [header, other, signature].join("."),
      "without a signature": good.slice(0, good.lastIndexOf(".") + 1),
    };
    for (const [what, token] of Object.entries(tokens)) {
      expect(await execute(daemon, `Bearer ${token}`), what).toMatchObject({ status: 401, json: { error: "Invalid token" } });
    }
    // Clocks differ.
    for (const leeway of [{ exp: now() - 20 }, { iat: now() + 20 }]) {
      expect((await execute(daemon, `Bearer ${await sign(leeway)}`)).status).toBe(200);
    }
    expect((await execute(daemon, `Bearer ${await sign({}, router.privateKey, "RS512")}`)).status).toBe(200);
  });

  it("for another sandbox is refused by --jwt-audience", async () => {
    await using daemon = await startDaemon({ args: ["--jwt-audience", "sandbox-1"], env: { PICOD_AUTH_PUBLIC_KEY: publicKey } });
    for (const aud of [undefined, "sandbox-2", ["sandbox-2", "sandbox-3"]]) {
      expect((await execute(daemon, `Bearer ${await sign({ aud })}`)).status, String(aud)).toBe(401);
    }
    for (const aud of ["sandbox-1", ["sandbox-2", "sandbox-1"]]) {
      expect((await execute(daemon, `Bearer ${await sign({ aud })}`)).status, String(aud)).toBe(200);
    }
  });
});
