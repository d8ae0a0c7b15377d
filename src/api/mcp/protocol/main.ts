import { randomUUID } from "node:crypto";
import type { EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { Ajv } from "ajv";
import type { Validate } from "../tool-server.js";
import { createMcpServer, type McpServerOptions, type RequestOrigin } from "./mcp-server.js";

/* The whole of the SDK is a bundle of its own, of which this is the entry: what it needs of the daemon it is given. */

/** A client's session of streamable HTTP. */
export interface HttpSession {
  /** Undefined until it is initialised. */
  readonly id: string | undefined;
  /** @param body of a POST, as JSON. */
  handle(request: Request, body: unknown, origin: RequestOrigin): Promise<Response>;
  /** What is in progress is cancelled. */
  close(): Promise<void>;
}

/** How soon a client whose stream was closed is to come back. */
const RETRY_MS = 1_000;

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
  return {
    get id() {
      return transport.sessionId;
    },
    handle(request, body, origin) {
      // The SDK's own way to bring along who calls; the gate has seen the token.
      const authInfo = { token: "", clientId: origin.call.caller?.name ?? "", scopes: [], extra: { origin } };
      return transport.handleRequest(request, { parsedBody: body, authInfo });
    },
    close: () => server.close(),
  };
}

/** For what tools take. */
export function createSchemaCompiler(): (schema: object) => Validate {
  const ajv = new Ajv({ allErrors: true });
  return (schema) => {
    const validate = ajv.compile(schema);
    return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: "arguments" }));
  };
}
