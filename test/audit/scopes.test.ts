import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethodStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { afterAll, describe, expect, it } from "vitest";
import { describeRequirement, fulfils, type Requirement, SCOPES, type Scope } from "../../src/auth/scopes.js";
import { connectTo } from "../helpers/clients.js";
import { registeredRoutes, registeredRpcs, rpcRequirements } from "../helpers/registered.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

const directory = mkdtempSync(join(tmpdir(), "picod-scopes-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** One caller for each scope, whose token is its name. */
const scopesFile = join(directory, "scopes.json");
const tokenOf = (scope: Scope) => `only-${scope.replace(":", "-")}`;
const callers = SCOPES.map((scope) => ({ name: tokenOf(scope), token: tokenOf(scope), scopes: [scope] }));
writeFileSync(scopesFile, JSON.stringify({ callers }), { mode: 0o600 });
const start = () => startDaemon({ args: ["--scopes-file", scopesFile, "--workdir", directory] });

const rpcs = registeredRpcs();
const routes = registeredRoutes();
const requirementOf = (path: string) => rpcRequirements.get(path) ?? "public";
/** Of a request without a body, which nothing is done for. */
const DEADLINE = { "connect-timeout-ms": "2000", "content-type": "application/json" };

/** Status and the first of the body: what follows something may never end. */
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
  return { status: answer.statusCode ?? 0, first, challenge: answer.headers["www-authenticate"] };
}

const needs = (requirement: Requirement) => `needs the scope ${describeRequirement(requirement)}, which only-`;

describe("a token", () => {
  it("opens the RPCs of its scope and no other, in Connect", { timeout: 120_000 }, async () => {
    await using daemon = await start();
    for (const { requestPath, method } of rpcs) {
      const requirement = requirementOf(requestPath);
      const contentType = method.methodKind === "unary" ? "application/json" : "application/connect+json";
      for (const scope of SCOPES) {
        const headers = { ...DEADLINE, "content-type": contentType };
        const { status, first } = await begin(daemon, "POST", requestPath, tokenOf(scope), headers);
        const title = `${requestPath} with ${scope}`;
        if (fulfils(new Set([scope]), requirement)) {
          expect.soft(first, title).not.toContain("permission_denied");
          continue;
        }
        expect.soft(first, title).toContain('"permission_denied"');
        expect.soft(first, title).toContain(needs(requirement));
        expect.soft(status, title).toBe(method.methodKind === "unary" ? 403 : 200);
      }
    }
  });

  it("opens the RPCs of its scope and no other, in gRPC", { timeout: 120_000 }, async () => {
    await using daemon = await start();
    for (const scope of SCOPES) {
      await using clients = connectTo(daemon.url, { token: tokenOf(scope) });
      for (const { requestPath, method, service } of rpcs) {
        const requirement = requirementOf(requestPath);
        if (fulfils(new Set([scope]), requirement)) continue;
        const error = await callEmpty(clients.transport, method).catch((reason: unknown) => ConnectError.from(reason));
        expect.soft(error, `${service.typeName} ${requestPath} with ${scope}`).toMatchObject({
          code: Code.PermissionDenied,
          rawMessage: expect.stringContaining(needs(requirement)),
        });
      }
    }
  });

  it("opens the routes of its scope and no other", { timeout: 120_000 }, async () => {
    await using daemon = await start();
    for (const { method, path, requires } of routes.filter(({ path }) => !path.startsWith("/terminal"))) {
      for (const scope of SCOPES) {
        const title = `${method} ${path} with ${scope}`;
        const target = path.replace("{id}", "proc_none").replace("{path...}", "none");
        const { status, first, challenge } = await begin(daemon, method, target, tokenOf(scope));
        if (fulfils(new Set([scope]), requires)) {
          expect.soft(first, title).not.toContain("needs the scope");
          expect.soft([401, 403], title).not.toContain(status);
          continue;
        }
        expect.soft(status, title).toBe(403);
        expect.soft(first, title).toContain(`${method} ${path} ${needs(requires)}`);
        expect.soft(challenge, title).toBe(`Bearer error="insufficient_scope", scope="${requires}"`);
      }
    }
  });

  it("says nothing of what is not there to whoever has no token", async () => {
    await using daemon = await start();
    expect((await begin(daemon, "GET", "/none", tokenOf("admin"))).status).toBe(404);
    expect((await begin(daemon, "GET", "/none", "nobody")).status).toBe(401);
  });
});

async function callEmpty(transport: Transport, method: (typeof rpcs)[number]["method"]): Promise<unknown> {
  const signal = AbortSignal.timeout(10_000);
  if (method.methodKind === "unary") return transport.unary(method as DescMethodUnary, signal, undefined, undefined, {});
  async function* none() {}
  const { message } = await transport.stream(method as DescMethodStreaming, signal, undefined, undefined, none());
  for await (const each of message) return each;
  return undefined;
}

describe("docs/authorization.md", () => {
  it("lists what every RPC and every route asks for", () => {
    const file = readFileSync(join(import.meta.dirname, "../../docs/authorization.md"), "utf8");
    const listed = /<!-- scopes: [\s\S]*?-->\n([\s\S]*?)<!-- \/scopes -->/.exec(file)?.[1];
    const ofRpcs = [...rpcRequirements].map(([path, requirement]) => [path, requirement] as const);
    const ofRoutes = routes.map(({ method, path, requires }) => [`${method} ${path}`, requires] as const);
    const rows = [...ofRpcs, ...ofRoutes].map(([what, requirement]) => {
      return `| \`${what}\` | ${requirement === "public" ? "nothing" : `\`${describeRequirement(requirement).replaceAll(" or ", "` or `")}\``} |\n`;
    });
    expect(listed).toBe(`| RPC or route | scope |\n|---|---|\n${rows.join("")}`);
  });
});
