// The server under test: PicoD's own server, from the port to the interceptors, with the runner's service in place of PicoD's.
// The runner says on stdin what it needs and is told on stdout where the server listens.
import { create, createRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from "#conformance/connectrpc/conformance/v1/server_compat_pb.js";
import { ConformanceService, file_connectrpc_conformance_v1_service } from "#conformance/connectrpc/conformance/v1/service_pb.js";
import { loadConfig } from "../../src/config.js";
import { createLogger } from "../../src/logger.js";
import { createMetrics } from "../../src/metrics.js";
import { Readiness } from "../../src/readiness.js";
import { createSandbox } from "../../src/sandbox.js";
import { createServer } from "../../src/server/create-server.js";
import { version } from "../../src/version.js";
import { readMessage, writeMessage } from "./compat.js";
import { conformanceService } from "./service.js";

const HOST = "127.0.0.1";
/** Its messages hold google.protobuf.Any, which has another form in JSON for each type. */
const OPTIONS = { jsonOptions: { registry: createRegistry(file_connectrpc_conformance_v1_service) } };

async function serve(): Promise<void> {
  const { useTls, messageReceiveLimit } = fromBinary(ServerCompatRequestSchema, await readMessage(process.stdin));
  if (useTls) throw new Error("the configuration claims TLS, which the port does not speak");
  const limit = messageReceiveLimit === 0 ? {} : { maxMessageBytes: [String(messageReceiveLimit)] };
  // Standard output is the runner's.
  const config = loadConfig({ logLevel: ["silent"], ...limit }, {});
  const sandbox = createSandbox(config, process.env);
  const server = createServer({
    config,
    sandbox,
    envd: undefined,
    readiness: new Readiness(),
    metrics: createMetrics(version, () => sandbox.processes.size),
    logger: await createLogger(config),
    // The runner's client has no token to show.
    verifier: undefined,
    realms: [],
    registerServices: (register) => register(ConformanceService, conformanceService, OPTIONS),
  });
  const port = await server.listen(HOST, 0);
  const response = create(ServerCompatResponseSchema, { host: HOST, port });
  await writeMessage(process.stdout, toBinary(ServerCompatResponseSchema, response));
}

serve().catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
