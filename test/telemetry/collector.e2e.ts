import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { cached } from "./cached.js";
import { fromOtlp, type ReceivedSpan } from "./otlp-receiver.js";

const sources = join(import.meta.dirname, "collector");
let program = "";

beforeAll(() => {
  const madeOf = ["main.go", "go.sum"].map((name) => readFileSync(join(sources, name), "utf8")).join("");
  program = cached("otlp-receiver", madeOf, (path) => {
    execFileSync("go", ["build", "-o", path, "."], { cwd: sources, stdio: "inherit" });
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe("the OTLP receiver of the OpenTelemetry collector", () => {
  it.each(["none", "gzip"])("takes the spans (compression %s)", async (compression) => {
    const address = `127.0.0.1:${await freePort()}`;
    const collector = spawn(program, [address], { stdio: ["ignore", "pipe", "inherit"] });
    const spans: ReceivedSpan[] = [];
    let ready = false;
    createInterface(collector.stdout).on("line", (line) => {
      if (line.startsWith("{")) spans.push(...fromOtlp(JSON.parse(line), String));
      else ready = true;
    });
    try {
      await eventually("it listens", () => ready);
      const otel = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${address}`, OTEL_EXPORTER_OTLP_COMPRESSION: compression };
      const daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN: TOKEN, ...otel } });
      await using clients = connectTo(daemon.url);
      const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "vendor=1" };
      const { stdout } = await clients.process.execute({ command: "echo $TRACEPARENT" }, { headers });
      await clients.process.execute({ argv: ["/missing/program"] });
      expect(await daemon.stop()).toBe(0);
      await eventually("all have arrived", () => spans.length >= 4);
      expect(spans.map(({ name }) => name).sort()).toEqual([
        "picod.v1.ProcessService/Execute",
        "picod.v1.ProcessService/Execute",
        "spawn",
        "spawn",
      ]);
      const [call, spawned] = ["picod.v1.ProcessService/Execute", "spawn"].map((wanted) =>
        spans.find(({ name, traceId }) => name === wanted && traceId === "0af7651916cd43dd8448eb211c80319c"),
      );
      // SPAN_KIND_SERVER.
      expect(call).toMatchObject({ kind: "2", parentSpanId: "b7ad6b7169203331", traceState: "vendor=1" });
      expect(call?.attributes).toMatchObject({ "rpc.system.name": "grpc", "rpc.status_code": "OK" });
      expect(call?.resource).toMatchObject({ "service.name": "picod", "telemetry.sdk.language": "nodejs" });
      expect(spawned).toMatchObject({ parentSpanId: call?.spanId });
      expect(stdout).toBe(`00-0af7651916cd43dd8448eb211c80319c-${spawned?.spanId}-01\n`);
      // STATUS_CODE_ERROR.
      expect(spans.filter(({ status }) => status === "2").map(({ name }) => name)).toEqual(["spawn"]);
    } finally {
      collector.kill();
      await once(collector, "exit");
    }
  });
});
