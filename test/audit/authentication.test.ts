import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.js";
import { connectTo } from "../helpers/clients.js";
import { interceptors, registerAll, registeredRoutes, registeredRpcs, rpcRequirements } from "../helpers/registered.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { ask } from "../rpc/support/http1.js";
import { STREAMING_RPCS } from "../rpc/support/streaming-cases.js";

/** Whatever is added to this list is open to everybody who reaches the port. */
const PUBLIC = [
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
  "/health",
  "/healthz",
  "/readyz",
  "/v1/health",
];

/** E2B's RPCs say it in the words of their contract. */
const REFUSED = /"unauthenticated"|"code":401,/;

const rpcs = registeredRpcs();
const routes = registeredRoutes().map(({ path }) => path.replace("{id}", "proc_none"));
const TERMINAL_PAGE = ["/terminal", "/terminal/terminal.js", "/terminal/terminal.css"];
const isPublic = (path: string) => PUBLIC.includes(path);

describe("what is served without a token", () => {
  it("is the public list and nothing else", { timeout: 90_000 }, async () => {
    await using daemon = await startDaemon();
    for (const authorization of [undefined, "Bearer wrong", `Basic ${TOKEN}`]) {
      const headers = authorization === undefined ? {} : { authorization };
      for (const { requestPath, method } of rpcs) {
        const contentType = method.methodKind === "unary" ? "application/json" : "application/connect+json";
        const answer = await ask(
          daemon,
          requestPath,
          { method: "POST", headers: { ...headers, "content-type": contentType } },
          "",
        );
        expect.soft(REFUSED.test(answer.body), requestPath).toBe(!isPublic(requestPath));
      }
      for (const path of [...routes, "/", "/none"]) {
        for (const method of ["GET", "POST", "DELETE", "OPTIONS"]) {
          const { status } = await ask(daemon, path, { method, headers });
          expect.soft(status === 401, `${method} ${path}`).toBe(!isPublic(path));
        }
      }
    }
  });

  it("agrees with what the interceptor lets through", () => {
    for (const [path, requirement] of rpcRequirements) expect.soft(requirement === "public", path).toBe(isPublic(path));
  });

  it("includes the metrics only when asked for", async () => {
    await using closed = await startDaemon();
    await expect(ask(closed, "/metrics")).resolves.toMatchObject({ status: 401 });
    await expect(ask(closed, "/metrics", { headers: { authorization: `Bearer ${TOKEN}` } })).resolves.toMatchObject({
      status: 200,
    });
    await using open = await startDaemon({ args: ["--metrics-public"] });
    await expect(ask(open, "/metrics")).resolves.toMatchObject({ status: 200, body: expect.stringContaining("picod_rpc_total") });
  });

  it("includes the terminal page, and nothing else of its folder, only when asked for", async () => {
    await using closed = await startDaemon();
    for (const path of TERMINAL_PAGE) await expect(ask(closed, path)).resolves.toMatchObject({ status: 401 });
    const headers = { authorization: `Bearer ${TOKEN}` };
    await expect(ask(closed, "/terminal", { headers })).resolves.toMatchObject({ status: 404 });
    await using open = await startDaemon({ args: ["--terminal-page"] });
    for (const path of TERMINAL_PAGE) await expect(ask(open, path)).resolves.toMatchObject({ status: 200 });
    for (const path of ["/terminal/", "/terminal/../v1/processes", "/terminal/terminal.js.map", "/v1/processes"]) {
      await expect(ask(open, path), path).resolves.toMatchObject({ status: 401 });
    }
  });

  it("is refused by the interceptor where a request came past the gate", async () => {
    const { createRouterTransport } = await import("@connectrpc/connect");
    const transport = createRouterTransport(registerAll, { router: { interceptors } });
    const error = ConnectError.from(
      await createClient(Health, transport)
        .check({})
        .catch((reason: unknown) => reason),
    );
    expect(error).toMatchObject({ code: Code.Unauthenticated, rawMessage: "/grpc.health.v1.Health/Check needs an access token" });
  });
});

describe("every RPC", () => {
  it("that streams has its five cases", () => {
    const streaming = rpcs.filter(({ method }) => method.methodKind !== "unary").map(({ requestPath }) => requestPath);
    expect(STREAMING_RPCS.map(({ procedure }) => procedure).toSorted()).toEqual(streaming.toSorted());
  });

  it("is served to whoever has the token", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await expect(clients.filesystem.stat({ path: "/" })).resolves.toMatchObject({ entry: { path: "/" } });
    await expect(clients.process.execute({ command: "true" })).resolves.toMatchObject({ exitCode: 0 });
  });
});
