import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  isJSONRPCRequest,
  type JSONRPCRequest,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const SCHEMAS = [
  InitializeRequestSchema,
  ListToolsRequestSchema,
  CallToolRequestSchema,
  ListResourcesRequestSchema,
  ReadResourceRequestSchema,
];
const SCHEMA_OF_METHOD = new Map<string, (typeof SCHEMAS)[number]>(SCHEMAS.map((schema) => [schema.shape.method.value, schema]));

/** Answers requests whose parameters do not fit: the SDK takes that for an error of its own. To be called when the transport is connected. */
export function refuseInvalidParams(transport: Pick<Transport, "onmessage" | "send">): void {
  const { onmessage: deliver } = transport;
  transport.onmessage = (message, extra) => {
    const problem = isJSONRPCRequest(message) ? problemOf(message) : undefined;
    if (problem === undefined) deliver?.(message, extra);
    else void transport.send({ jsonrpc: "2.0", id: (message as JSONRPCRequest).id, error: problem }).catch(() => undefined);
  };
}

function problemOf(request: JSONRPCRequest) {
  const issue = SCHEMA_OF_METHOD.get(request.method)?.safeParse(request).error?.issues[0];
  if (issue === undefined) return undefined;
  const [, ...path] = issue.path;
  const where = path.length === 0 ? "" : ` ${path.join(".")}:`;
  const why = issue.message.replace(/^Invalid input: /, "");
  return { code: ErrorCode.InvalidParams, message: `invalid params of ${request.method}:${where} ${why}` };
}
