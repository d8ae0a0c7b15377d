import { execFileSync } from "node:child_process";
import { createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, type JWTPayload, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { type JwtKeyFile, readJwtKeys } from "../src/auth/jwt-keys.js";
import { ConfigError } from "../src/auth/token.js";
import { connectTo } from "./helpers/clients.js";
import { example } from "./helpers/example.js";
import { runPicod } from "./helpers/run-picod.js";
import { type Daemon, startDaemon } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";
import { askAs } from "./helpers/with-token.js";

const STAT = "/picod.v1.FilesystemService/Stat";
const LIST = "/picod.v1.ProcessService/ListProcesses";
const AUDIENCE = "sandbox-1";
const SPKI = { type: "spki", format: "pem" } as const;

const KEYS = {
  RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: generateKeyPairSync("ed25519"),
};
type Algorithm = keyof typeof KEYS;

const nowS = () => Math.floor(Date.now() / 1000);
const good = (): JWTPayload => ({ sub: "agent-7", aud: AUDIENCE, exp: nowS() + 60, scope: "files:read openid" });

function sign(payload: JWTPayload, alg = "ES256", key: KeyObject = KEYS.ES256.privateKey, kid?: string): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) }).sign(key);
}

async function startWith(directory: string, publicKey: KeyObject, args: readonly string[] = []): Promise<Daemon> {
  const path = `${directory}/public.pem`;
  writeFileSync(path, publicKey.export(SPKI));
  return startDaemon({ env: {}, args: ["--jwt-public-key", path, "--jwt-audience", AUDIENCE, ...args] });
}

async function writeSet(path: string, keys: Readonly<Record<string, KeyObject>>): Promise<void> {
  const jwks = await Promise.all(Object.entries(keys).map(async ([kid, key]) => ({ ...(await exportJWK(key)), kid })));
  writeFileSync(path, JSON.stringify({ keys: jwks }));
}

const stat = (daemon: Daemon, token: string, path = "/") => askAs(daemon, token, STAT, { path });
const status = async (daemon: Daemon, token: string) => (await stat(daemon, token)).status;

describe("a JWT", () => {
  it.each(Object.keys(KEYS) as Algorithm[])("of %s opens what its scopes say, over gRPC too", async (algorithm) => {
    using directory = temporaryDirectory();
    const { publicKey, privateKey } = KEYS[algorithm];
    await using daemon = await startWith(directory.path, publicKey);
    const token = await sign(good(), algorithm, privateKey);
    expect(await status(daemon, token)).toBe(200);
    const denied = await askAs(daemon, token, LIST, {});
    expect([denied.status, denied.body]).toEqual([403, expect.stringContaining("needs the scope process:read, which agent-7")]);
    await using clients = connectTo(daemon.url, { token });
    // The first is verified, the second remembered.
    for (let count = 0; count < 2; count++) {
      await expect(clients.filesystem.stat({ path: "/" })).resolves.toMatchObject({ entry: { path: "/" } });
    }
    expect(await daemon.waitForLog(({ code }) => code === "ok")).toMatchObject({ caller: "agent-7", how: "jwt" });
    expect(JSON.stringify(daemon.logs)).not.toContain(token.slice(-20));
  });

  it("takes scopes as a list, and is worth nothing without", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startWith(directory.path, KEYS.ES256.publicKey);
    expect(await status(daemon, await sign({ ...good(), scope: ["files:read"] }))).toBe(200);
    expect(await status(daemon, await sign({ ...good(), aud: ["other", AUDIENCE] }))).toBe(200);
    for (const scope of [undefined, "", "read", "FILES:READ", []])
      expect(await status(daemon, await sign({ ...good(), scope }))).toBe(403);
  });

  it("is confined to the paths that it names", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/in`);
    await using daemon = await startWith(directory.path, KEYS.ES256.publicKey);
    const token = await sign({ ...good(), picod_paths: [`${directory.path}/in`] });
    expect((await stat(daemon, token, `${directory.path}/in`)).status).toBe(200);
    expect((await stat(daemon, token, directory.path)).status).toBe(403);
    expect((await stat(daemon, await sign({ ...good(), picod_paths: [] }), `${directory.path}/in`)).status).toBe(403);
  });

  it("does not count when somebody has made it up", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startWith(directory.path, KEYS.ES256.publicKey);
    const json = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const pem = KEYS.ES256.publicKey.export(SPKI);
    const hmac = `${json({ alg: "HS256" })}.${json(good())}`;
    const [header, , signature] = (await sign(good())).split(".");
    const past = { ...good(), exp: nowS() - 61 };
    const attacks: Record<string, [token: string, why: string]> = {
      "alg none": [`${json({ alg: "none" })}.${json(good())}.`, '"alg" (Algorithm) Header Parameter value not allowed'],
      "alg none with a signature": [`${json({ alg: "none" })}.${json(good())}.${signature}`, "not allowed"],
      "HS256 with the public key": [`${hmac}.${createHmac("sha256", pem).update(hmac).digest("base64url")}`, "not allowed"],
      "another key": [
        await sign(good(), "ES256", generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey),
        "signature verification failed",
      ],
      "another algorithm": [await sign(good(), "RS256", KEYS.RS256.privateKey), "not allowed"],
      "other claims": [`${header}.${json({ ...good(), scope: "admin" })}.${signature}`, "signature verification failed"],
      "wrong aud": [await sign({ ...good(), aud: "sandbox-2" }), 'unexpected "aud" claim value'],
      "no aud": [await sign({ ...good(), aud: undefined as never }), 'missing required "aud" claim'],
      "no exp": [await sign({ ...good(), exp: undefined as never }), 'missing required "exp" claim'],
      "exp as text": [await sign({ ...good(), exp: "9999999999" as unknown as number }), '"exp" claim must be a number'],
      "exp in the past": [await sign(past), '"exp" claim timestamp check failed'],
      "nbf in the future": [await sign({ ...good(), nbf: nowS() + 120 }), '"nbf" claim timestamp check failed'],
      "iat in the future": [await sign({ ...good(), iat: nowS() + 120 }), "token used before issued"],
      "paths of no list": [await sign({ ...good(), picod_paths: "/" }), "paths: expected a list"],
      "paths with dots": [await sign({ ...good(), picod_paths: ["/a/.."] }), "is not an absolute path"],
      "paths with process": [await sign({ ...good(), scope: "process", picod_paths: ["/"] }), "the scope process defeats them"],
      "scope of no text": [await sign({ ...good(), scope: 5 }), '"scope" claim is no text'],
      "too long": [await sign({ ...good(), padding: "x".repeat(9000) }), "longer than 8192 characters"],
      "no JSON": [`${Buffer.from("garbage").toString("base64url")}.x.y`, "the JWT does not count"],
      "no JWT": ["garbage", "missing or wrong access token"],
      "four parts": ["a.b.c.d", "missing or wrong access token"],
    };
    for (const [title, [token, why]] of Object.entries(attacks)) {
      const answer = await stat(daemon, token);
      expect.soft(answer.status, title).toBe(401);
      expect.soft(JSON.parse(answer.body).message, title).toContain(why);
    }
    // Within the grace.
    expect(await status(daemon, await sign({ ...good(), exp: nowS() - 30, nbf: nowS() + 30 }))).toBe(200);
    expect((await stat(daemon, await sign({ ...good(), padding: "x".repeat(20_000) }))).status).toBe(431);
  });

  it("is not AgentCube's, and AgentCube's is none", async () => {
    using directory = temporaryDirectory();
    const router = KEYS.RS256.publicKey.export(SPKI).toString();
    await using daemon = await startWith(directory.path, KEYS.ES256.publicKey, [
      "--auth-public-key",
      router,
      "--workspace",
      directory.path,
    ]);
    const [ours, theirs] = [await sign(good()), await sign(good(), "RS256", KEYS.RS256.privateKey)];
    const list = async (token: string) => (await askAs(daemon, token, "/api/files?path=.", undefined, "GET")).status;
    const execute = (token: string) => askAs(daemon, token, "/api/execute", { command: ["true"] });
    expect([await list(ours), await list(theirs), await status(daemon, ours), await status(daemon, theirs)]).toEqual([
      200, 200, 200, 401,
    ]);
    expect([(await execute(ours)).status, (await execute(theirs)).status]).toEqual([403, 200]);
    // In the words of its contract.
    expect(JSON.parse((await execute(ours)).body)).toMatchObject({
      code: 403,
      error: expect.stringContaining("needs the scope process"),
    });
    const confined = await sign({ ...good(), picod_paths: [directory.path] });
    expect(await list(confined)).toBe(400);
  });
});

describe("a set of keys", () => {
  it("is rotated by kid, and a broken one changes nothing", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/jwks.json`;
    await writeSet(path, { one: KEYS.ES256.publicKey, two: KEYS.EdDSA.publicKey });
    await using daemon = await startDaemon({ env: {}, args: ["--jwks-file", path, "--jwt-audience", AUDIENCE] });
    const one = await sign(good(), "ES256", KEYS.ES256.privateKey, "one");
    const two = await sign(good(), "EdDSA", KEYS.EdDSA.privateKey, "two");
    const three = await sign(good(), "RS256", KEYS.RS256.privateKey, "three");
    const asOther = await sign(good(), "ES256", KEYS.ES256.privateKey, "two");
    const all = async () => [
      await status(daemon, one),
      await status(daemon, two),
      await status(daemon, three),
      await status(daemon, asOther),
    ];
    expect(await all()).toEqual([200, 200, 401, 401]);
    writeFileSync(path, '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}');
    const failure = await daemon.waitForLog(({ msg }) => msg.startsWith("cannot use the changed keys of JWTs"));
    expect(failure.err).toMatchObject({ message: expect.stringContaining("it holds a secret key") });
    expect(await all()).toEqual([200, 200, 401, 401]);
    await writeSet(path, {
      two: KEYS.EdDSA.publicKey,
      three: KEYS.RS256.publicKey,
      four: generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey,
    });
    await daemon.waitForLog(({ msg }) => msg === "keys of JWTs read again");
    // The first was remembered, and is so no longer.
    expect(await all()).toEqual([401, 200, 200, 401]);
    expect(JSON.parse((await stat(daemon, one)).body).message).toContain("no applicable key found");
  });

  it("refuses to start without a key that is safe to use", async () => {
    using directory = temporaryDirectory();
    const file = (name: string, text: string | Buffer) => {
      writeFileSync(`${directory.path}/${name}`, text);
      return `${directory.path}/${name}`;
    };
    const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey;
    const curve = generateKeyPairSync("ec", { namedCurve: "secp384r1" }).publicKey;
    const PRIVATE = { type: "pkcs8", format: "pem" } as const;
    const cases: [kind: JwtKeyFile["kind"], path: string, why: string][] = [
      ["pem", file("small", small.export(SPKI)), "a key for RSA of 1024 bits"],
      ["pem", file("curve", curve.export(SPKI)), "a key for the curve secp384r1"],
      ["pem", file("private", KEYS.EdDSA.privateKey.export(PRIVATE)), "it holds a private key"],
      ["pem", file("none", "none"), "it is not a public key in PEM"],
      ["pem", `${directory.path}/missing`, "no such file or directory"],
      ["jwks", file("empty", '{"keys": []}'), "it holds no key for RS256, ES256 or EdDSA"],
      ["jwks", file("d", JSON.stringify({ keys: [await exportJWK(KEYS.EdDSA.privateKey)] })), "it holds a secret key"],
      ["jwks", file("text", "["), "it is not JSON"],
      ["jwks", file("list", "[]"), 'expected {"keys": […]}'],
    ];
    for (const [kind, path, why] of cases) {
      const error = await readJwtKeys({ kind, path }).catch((reason: unknown) => reason);
      expect.soft(error, path).toBeInstanceOf(ConfigError);
      expect.soft((error as Error).message, path).toContain(why);
      expect.soft((error as Error).message, path).toContain(path);
    }
    const [, path = "", why] = cases[0] ?? [];
    const { ended, stderr } = await runPicod(["--port", "0", "--jwt-public-key", path, "--jwt-audience", AUDIENCE]);
    expect([ended, stderr]).toEqual([2, expect.stringContaining(`${path}: ${why}`)]);
  });
});

describe("the documentation's JWT", () => {
  it("is taken", async () => {
    using directory = temporaryDirectory();
    const root = join(import.meta.dirname, "..");
    // Below the repository, so that it finds jose.
    const folder = join(root, "coverage/jwt-example");
    mkdirSync(folder, { recursive: true });
    try {
      writeFileSync(`${folder}/sign.mjs`, example("docs/authorization.md", "jwt"));
      execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", "jwt-key.pem"], { cwd: folder });
      execFileSync("openssl", ["pkey", "-in", "jwt-key.pem", "-pubout", "-out", `${directory.path}/jwt-public.pem`], {
        cwd: folder,
      });
      const token = execFileSync(process.execPath, ["sign.mjs"], { cwd: folder, encoding: "utf8" }).trim();
      const args = ["--jwt-public-key", `${directory.path}/jwt-public.pem`, "--jwt-audience", AUDIENCE];
      await using daemon = await startDaemon({ env: {}, args });
      expect((await askAs(daemon, token, LIST, {})).status).toBe(200);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
