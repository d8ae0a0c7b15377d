// The server under test: PicoD's own server, from the port to the interceptors, with the runner's service in place of PicoD's.
// The runner says on stdin what it needs and is told on stdout where the server listens.
import { randomBytes, X509Certificate } from "node:crypto";
import { create, createRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  ServerCompatRequestSchema,
  ServerCompatResponseSchema,
} from "#conformance/connectrpc/conformance/v1/server_compat_pb.js";
import { ConformanceService, file_connectrpc_conformance_v1_service } from "#conformance/connectrpc/conformance/v1/service_pb.js";
import { Authenticator } from "../../src/auth/authenticator.js";
import { ClientCertificates, subjectAltNames } from "../../src/auth/client-certificates.js";
import { KnownCallers } from "../../src/auth/known-callers.js";
import { ALL_SCOPES, type MethodRequirements } from "../../src/auth/scopes.js";
import { TokenVerifier } from "../../src/auth/token-verifier.js";
import type { Caller } from "../../src/call.js";
import { loadConfig } from "../../src/config.js";
import { createLogger } from "../../src/logger.js";
import { createMetrics } from "../../src/metrics.js";
import { Confinement } from "../../src/policy/confinement.js";
import { Readiness } from "../../src/readiness.js";
import { createSandbox } from "../../src/sandbox.js";
import { createServer, type ServerParts } from "../../src/server/create-server.js";
import { newInstanceId } from "../../src/server/instance.js";
import { Tls } from "../../src/server/tls.js";
import { version } from "../../src/version.js";
import { readMessage, writeMessage } from "./compat.js";
import { conformanceService } from "./service.js";

const HOST = "127.0.0.1";
/** Its messages hold google.protobuf.Any, which has another form in JSON for each type. */
const OPTIONS = { jsonOptions: { registry: createRegistry(file_connectrpc_conformance_v1_service) } };

const REQUIREMENTS: MethodRequirements<typeof ConformanceService> = {
  unary: "process",
  idempotentUnary: "process",
  clientStream: "process",
  serverStream: "process",
  bidiStream: "process",
  unimplemented: "process",
};

/**
 * The runner's client has no token to show. Where it has a certificate, that alone lets it in: it is one that has issued itself, and is known by
 * its names.
 */
function authentication(ca: string): Pick<ServerParts, "verifier" | "authenticator"> {
  if (ca === "") return { verifier: undefined, authenticator: undefined };
  const caller: Caller = { name: "runner", how: "certificate", scopes: ALL_SCOPES };
  const certificate = new X509Certificate(ca);
  const names = [...subjectAltNames(certificate.subjectAltName ?? ""), `cn:${certificate.toLegacyObject().subject.CN}`];
  const known = new KnownCallers(names.map((name) => ({ caller, certificate: name })));
  const verifier = new TokenVerifier(randomBytes(32).toString("hex"));
  return { verifier, authenticator: new Authenticator(known, undefined, new ClientCertificates()) };
}

async function serve(): Promise<void> {
  const compat = fromBinary(ServerCompatRequestSchema, await readMessage(process.stdin));
  const { useTls, serverCreds, clientTlsCert, messageReceiveLimit } = compat;
  const [cert = "", key = "", ca = ""] = [serverCreds?.cert, serverCreds?.key, clientTlsCert].map((pem) =>
    Buffer.from(pem ?? "").toString(),
  );
  const limit = messageReceiveLimit === 0 ? {} : { maxMessageBytes: [String(messageReceiveLimit)] };
  // Standard output is the runner's.
  const config = loadConfig({ logLevel: ["silent"], ...limit }, {});
  const ignore = () => undefined;
  const confinement = new Confinement({ path: "", shell: undefined, onRefused: ignore, onLeftOut: ignore });
  const sandbox = createSandbox(config, process.env, confinement);
  const server = createServer({
    config,
    sandbox,
    envd: undefined,
    readiness: new Readiness(),
    metrics: createMetrics(version, () => sandbox.processes.size),
    logger: await createLogger(config),
    ...authentication(ca),
    policy: undefined,
    realms: [],
    audit: undefined,
    tracer: undefined,
    instanceId: newInstanceId(),
    tls: useTls ? new Tls({ cert, key, ca: ca === "" ? undefined : ca, crl: undefined, worldReadable: false }) : undefined,
    registerServices: (register) =>
      register(ConformanceService.typeName, REQUIREMENTS, {
        describe: () => ConformanceService,
        implement: () => conformanceService,
        options: OPTIONS,
      }),
  });
  const port = await server.listen({ host: HOST, port: 0, trusted: false, cleartext: false });
  const response = create(ServerCompatResponseSchema, {
    host: HOST,
    port,
    pemCert: useTls ? Buffer.from(cert) : new Uint8Array(),
  });
  await writeMessage(process.stdout, toBinary(ServerCompatResponseSchema, response));
}

serve().catch((error: unknown) => {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
});
