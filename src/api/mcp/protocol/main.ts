import { randomUUID } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SecureContextOptions } from "node:tls";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { Ajv, type ErrorObject } from "ajv";
import type { Validate } from "../tool-server.js";
import { Bridge, type BridgeOptions } from "./bridge/bridge.js";
import { createRemoteFetch } from "./bridge/remote-fetch.js";
import { createMcpServer, type McpServerOptions, type RequestOrigin } from "./mcp-server.js";
import { refuseInvalidParams } from "./refuse-invalid-params.js";

/* The whole of the SDK is a bundle of its own, of which this is the entry: what it needs of the daemon it is given. */

/** A client's session of streamable HTTP. */
export interface HttpSession {
  /** Undefined until it is initialised. */
  readonly id: string | undefined;
  /** @param body of a POST, as JSON. */
  handle(request: Request, body: unknown, origin: RequestOrigin): Promise<Response>;
  /** Ends the one stream of requests that were cancelled, which the SDK never answers. @param ids all of those. */
  endStream(ids: readonly unknown[]): Promise<void>;
  /** What is in progress is cancelled. */
  close(): Promise<void>;
}

/** How soon a client whose stream was closed is to come back. */
const RETRY_MS = 1_000;
/** The code is that of the Language Server Protocol. */
const CANCELLED = { code: -32_800, message: "the request was cancelled" };
/** On one line: more than the largest file that may be written, in JSON. */
const MAX_STDIO_MESSAGE_BYTES = 512 * 1024 * 1024;

export type HttpSessionOptions = Omit<McpServerOptions, "originOf"> & {
  readonly eventStore: EventStore;
  readonly onClose: () => void;
};

export async function openHttpSession({ eventStore, onClose, ...options }: HttpSessionOptions): Promise<HttpSession> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore,
    retryInterval: RETRY_MS,
  });
  const server = createMcpServer({ ...options, originOf: ({ authInfo }) => authInfo?.extra?.origin as RequestOrigin });
  server.onclose = onClose;
  await server.connect(transport as Parameters<typeof server.connect>[0]);
  refuseInvalidParams(transport as Parameters<typeof refuseInvalidParams>[0]);
  return {
    get id() {
      return transport.sessionId;
    },
    handle(request, body, origin) {
      // The SDK's own way to bring along who calls; the gate has seen the token.
      const authInfo = { token: "", clientId: origin.call.caller?.name ?? "", scopes: [], extra: { origin } };
      return transport.handleRequest(request, { parsedBody: body, authInfo });
    },
    async endStream(ids) {
      // What was just answered is written first.
      await nextTurn();
      for (const id of ids) transport.closeSSEStream(id as RequestId);
      for (const id of ids) {
        // Goes nowhere but to who takes the stream up again; the SDK remembers a request until there is an answer, and complains of this one.
        const answer = { jsonrpc: "2.0" as const, id: id as RequestId, error: CANCELLED };
        await transport.send(answer).catch(() => undefined);
      }
    },
    close: () => server.close(),
  };
}

export type StdioSessionOptions = McpServerOptions & {
  readonly input: Readable;
  readonly output: Writable;
  readonly onError: (error: Error) => void;
};

/** Resolves with the function that ends it. */
export async function openStdioSession({
  input,
  output,
  onError,
  ...options
}: StdioSessionOptions): Promise<() => Promise<void>> {
  const server = createMcpServer(options);
  server.onerror = onError;
  const transport: Transport = new StdioServerTransport(input, output, { maxBufferSize: MAX_STDIO_MESSAGE_BYTES });
  await server.connect(transport);
  refuseInvalidParams(transport);
  return () => server.close();
}

export type RemoteBridge = Pick<Bridge, "start" | "close">;
export type RemoteBridgeOptions = Omit<BridgeOptions, "fetch" | "maxMessageBytes"> & { readonly tls: SecureContextOptions };

/** The other way round: a client of a daemon that is a server to whoever has the other ends of the streams. */
export function createBridge({ tls, ...options }: RemoteBridgeOptions): RemoteBridge {
  return new Bridge({ ...options, maxMessageBytes: MAX_STDIO_MESSAGE_BYTES, fetch: createRemoteFetch(tls) });
}

/** For what tools take. */
export function createSchemaCompiler(): (schema: object) => Validate {
  const ajv = new Ajv({ allErrors: true });
  return (schema) => {
    const validate = ajv.compile(schema);
    return (value) => (validate(value) ? undefined : (validate.errors ?? []).map(describe).join(", "));
  };
}

/** "encoding must be equal to one of the allowed values: text, base64": with the value that a model is to put right. */
function describe({ instancePath, message = "is wrong", params }: ErrorObject): string {
  const where = instancePath === "" ? "they" : instancePath.slice(1).replaceAll("/", ".");
  const { allowedValues, additionalProperty } = params as { allowedValues?: readonly unknown[]; additionalProperty?: string };
  if (allowedValues !== undefined) return `${where} ${message}: ${allowedValues.join(", ")}`;
  return additionalProperty === undefined ? `${where} ${message}` : `${where} ${message}: ${JSON.stringify(additionalProperty)}`;
}
