import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { SCOPES } from "../../src/auth/scopes.js";
import { NEEDED_PERMISSIONS } from "../../src/policy/permissions.js";
import { registeredRoutes, registeredRpcs, rpcRequirements } from "../helpers/registered.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

const directory = mkdtempSync(join(tmpdir(), "picod-policy-"));
afterAll(() => rmSync(directory, { recursive: true }));

const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  nothing: [],
  reading: ["filesystem.read"],
  writing: ["filesystem.write"],
  running: ["shell"],
};
writeFileSync(
  join(directory, "policy.toml"),
  `[capabilities.nothing]
[capabilities.reading.permissions.filesystem]
read_paths = ["/**"]
[capabilities.writing.permissions.filesystem]
write_paths = ["/none/**"]
[capabilities.running.permissions.shell]
[capabilities.running.permissions.network]
allowed_domains = ["*"]
`,
);
const scopes = SCOPES;
const callers = [
  { name: "without", token: "without", scopes },
  ...Object.keys(CAPABILITIES).map((name) => ({ name, token: name, scopes, capability: name })),
];
writeFileSync(join(directory, "scopes.json"), JSON.stringify({ callers }), { mode: 0o600 });

const start = () =>
  startDaemon({
    args: ["--policy", join(directory, "policy.toml"), "--scopes-file", join(directory, "scopes.json"), "--workdir", directory],
  });

/** The first of the answer: what follows something may never end. */
async function begin(daemon: Daemon, method: string, path: string, token: string, headers: Record<string, string> = {}) {
  const asked = request({
    host: "127.0.0.1",
    port: daemon.port,
    method,
    path,
    agent: false,
    headers: { ...headers, authorization: `Bearer ${token}` },
  });
  asked.on("error", () => undefined).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.on("error", () => undefined);
  const first = await Promise.race([once(answer, "data").then(([chunk]) => String(chunk)), once(answer, "end").then(() => "")]);
  answer.destroy();
  return first;
}

const DENIED = "is denied by the policy";

describe("every RPC and every route", () => {
  const rpcs = registeredRpcs().map(({ requestPath, method }) => {
    const contentType = method.methodKind === "unary" ? "application/json" : "application/connect+json";
    const headers = { "connect-timeout-ms": "2000", "content-type": contentType };
    return { method: "POST", path: requestPath, requires: rpcRequirements.get(requestPath) ?? "public", headers };
  });
  const routes = registeredRoutes()
    .filter(({ path }) => !path.startsWith("/terminal"))
    .map(({ method, path, requires }) => ({
      method,
      path: path.replace("{id}", "proc_none").replace("{path...}", "none"),
      requires,
      headers: {},
    }));

  it("declares what it needs of a capability, and is denied to whoever has none of it", { timeout: 60_000 }, async () => {
    await using daemon = await start();
    for (const { method, path, requires, headers } of [...rpcs, ...routes]) {
      const needed: readonly string[] = NEEDED_PERMISSIONS[requires];
      const isPublic = requires === "public";
      for (const [name, granted] of [["without", undefined], ...Object.entries(CAPABILITIES)] as const) {
        const title = `${method} ${path} with ${name}`;
        const isDenied =
          !isPublic && (granted === undefined || (needed.length > 0 && !granted.some((each) => needed.includes(each))));
        const first = await begin(daemon, method, path, name, headers);
        if (isDenied) expect.soft(first, title).toContain(DENIED);
        else expect.soft(first, title).not.toContain(DENIED);
      }
    }
    expect(await begin(daemon, "GET", "/none", "without")).toContain(DENIED);
  });
});

describe("docs/policy.md", () => {
  it("lists what each scope needs", () => {
    const file = readFileSync(join(import.meta.dirname, "../../docs/policy.md"), "utf8");
    const listed = /<!-- needed: [\s\S]*?-->\n([\s\S]*?)<!-- \/needed -->/.exec(file)?.[1];
    const rows = SCOPES.map((scope) => {
      const needed = NEEDED_PERMISSIONS[scope].map((permission) => `\`${permission}\``).join(" or ");
      return `| \`${scope}\` | ${needed || "nothing, but a capability"} |\n`;
    });
    expect(listed).toBe(`| scope | needs |\n|---|---|\n${rows.join("")}`);
  });
});
