import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { ProcessService } from "../../src/gen/picod/v1/process_pb.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";

/** What grpc-go, grpcio and grpc-js accept unless told otherwise. */
const GRPC_DEFAULT_MAX_RECEIVE_BYTES = 4 * 1024 * 1024;

describe("the answer of Execute", () => {
  it.each([
    ["text", "head -c 30000000 /dev/zero | tr '\\0' x"],
    ["binary", "head -c 30000000 /dev/zero | tr '\\0' '\\377'"],
  ])("with both streams full of %s fits into what gRPC clients accept", async (_kind, command) => {
    await using daemon = await startDaemon();
    const sessionManager = new Http2SessionManager(daemon.url);
    const transport = createGrpcTransport({ baseUrl: daemon.url, sessionManager, readMaxBytes: GRPC_DEFAULT_MAX_RECEIVE_BYTES });
    const client = createClient(ProcessService, transport);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const result = await client.execute({ command: `(${command}) | tee /dev/stderr` }, { headers });
    sessionManager.abort();
    for (const [text, summary] of [
      [result.stdout, result.stdoutSummary],
      [result.stderr, result.stderrSummary],
    ] as const) {
      expect(summary?.totalBytes).toBe(30_000_000n);
      expect(Buffer.byteLength(text)).toBeGreaterThan(2_000_000);
    }
  });
});
