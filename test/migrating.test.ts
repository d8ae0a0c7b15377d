import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { example } from "./helpers/example.js";
import { type Daemon, startDaemon, TOKEN } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";

const PAGE = "docs/migrating.md";
const root = join(import.meta.dirname, "..");
const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };

/** SIOCSIFFLAGS with IFF_UP: a network of its own, where every port is free, begins without its loopback interface. */
const OWN_NETWORK = [
  "unshare",
  "--net",
  "python3",
  "-c",
  `import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH22x", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])`,
];

/** Starts the daemon with the very command of the page, except for what is taken on this machine: ports and /workspace. */
function startAsShown(name: string, directory: string, wrapper: readonly string[] = [], env = {}): Promise<Daemon> {
  const line = example(PAGE, name)
    .replace(/\bpicod\b/, 'exec "$@"')
    .replace(/\b(8080|9090|49982)\b/g, "0")
    .replace("/workspace", directory)
    .replace("public.pem", `${directory}/public.pem`)
    .replace("…", TOKEN);
  return startDaemon({ wrapper: [...wrapper, "sh", "-euc", line, "sh"], env });
}

async function alsoListening(daemon: Daemon): Promise<string[]> {
  const line = await daemon.waitForLog(({ msg }) => msg === "server listening");
  return line.alsoListening as string[];
}

describe("the page on migrating", () => {
  it("names only files that exist", () => {
    const page = readFileSync(join(root, PAGE), "utf8");
    for (const [, path = ""] of page.matchAll(/\]\(([^):]+)\)/g)) expect(existsSync(join(root, "docs", path)), path).toBe(true);
  });

  it("shows what takes the place of SSH", { timeout: 300_000 }, async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/data.csv`, "a,b\n");
    await using daemon = await startDaemon();
    const run = (file: string, ...args: string[]) => {
      const env = { PATH: process.env.PATH, PICOD_ACCESS_TOKEN: TOKEN };
      return execFileSync(file, args, { env, encoding: "utf8", cwd: directory.path });
    };
    const here = (name: string) => example(PAGE, name).replaceAll("49983", String(daemon.port));
    const venv = run("sh", `${root}/scripts/python-venv.sh`).trim();
    expect(run(`${venv}/bin/python`, "-c", here("ssh-python"))).toBe("out\n err\n 3\nit\r\ngot it\r\n 0\n");
    expect(readFileSync(`${directory.path}/copy.csv`, "utf8")).toBe("a,b\n");
    expect(run("sh", "-ec", here("ssh-curl"))).toBe("a,b\n");
  });

  it("starts what AgentCube's router looks for", async () => {
    using directory = temporaryDirectory();
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    writeFileSync(`${directory.path}/public.pem`, publicKey.export({ type: "spki", format: "pem" }));
    await using daemon = await startAsShown("agentcube", directory.path);
    const token = await new SignJWT().setProtectedHeader({ alg: "RS256" }).setIssuedAt().setExpirationTime("5m").sign(privateKey);
    const headers = { authorization: `Bearer ${token}` };
    const body = JSON.stringify({ command: ["ls"] });
    const answer = await fetch(`${daemon.url}/api/execute`, { method: "POST", headers, body });
    expect(await answer.json()).toMatchObject({ stdout: "public.pem\n" });
    expect((await fetch(`${daemon.url}/v1/files/`, { headers })).status).toBe(401);
  });

  it("starts what the clients of sandboxd look for, where they look for it", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startAsShown("sandboxd", directory.path, OWN_NETWORK, { PICOD_ROOT: directory.path });
    const curl = (...args: string[]) => {
      return execFileSync("nsenter", ["--net", "--target", `${daemon.pid}`, "curl", "-sSf", ...args], { encoding: "utf8" });
    };
    curl("-X", "PUT", "-d", "kept", "http://127.0.0.1:8080/v1/files/a%2Fb");
    const execute = "http://127.0.0.1:9090/process.v1.ProcessService/Execute";
    const request = ["-H", "content-type: application/json", "-d", '{"config":{"command":["cat","a/b"]}}'];
    expect(JSON.parse(curl("--http2-prior-knowledge", ...request, execute))).toEqual({ stdout: btoa("kept") });
  });

  it("trusts those on the loopback interface, and nobody else", async () => {
    using directory = temporaryDirectory();
    const env = { PICOD_ACCESS_TOKEN: TOKEN };
    await using daemon = await startAsShown("sandboxd-loopback", directory.path, [], env);
    const trusted = await alsoListening(daemon);
    expect(trusted).toHaveLength(2);
    for (const address of trusted) {
      expect((await fetch(`http://${address}/v1/files/file`, { method: "PUT", body: address })).status).toBe(204);
      expect(readFileSync(`${directory.path}/file`, "utf8")).toBe(address);
    }
    expect((await fetch(`${daemon.url}/v1/files/file`)).status).toBe(401);
    expect((await fetch(`${daemon.url}/v1/files/file`, { headers: AUTHORIZATION })).status).toBe(200);
  });

  it("starts what E2B's clients look for", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startAsShown("envd", directory.path);
    const [withoutToken] = await alsoListening(daemon);
    const list = async (url: string, token = {}) => {
      const headers = { "content-type": "application/json", ...token };
      return (await fetch(`${url}/process.Process/List`, { method: "POST", headers, body: "{}" })).status;
    };
    expect(await list(daemon.url)).toBe(401);
    expect(await list(daemon.url, { "x-access-token": TOKEN })).toBe(200);
    expect(await list(`http://${withoutToken}`)).toBe(200);
  });
});
