import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import type { Call } from "../../../call.js";
import type { ReadResource, ToolAnswer, ToolRequest, ToolServer } from "../tool-server.js";

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** What the one who sent a request is known by. */
export interface RequestOrigin {
  readonly call: Call;
  /** Aborted when nobody waits for the answer any longer. */
  readonly abortSignal: AbortSignal;
  /** Resolves when the answer has left; left out: it does so at once. */
  readonly answered?: Promise<void> | undefined;
}

export interface McpServerOptions {
  readonly version: string;
  readonly tools: ToolServer;
  /** The sandbox session of requests that name none. */
  readonly ownSessionId: string;
  readonly originOf: (extra: Extra) => RequestOrigin;
}

const INSTRUCTIONS =
  "A sandbox to run commands and keep files in. Relative paths begin in the session's working directory. Long output is shortened; its " +
  "resource has the rest. Errors of tools name a limit or a path: read them, and try something else.";
/** -32002, as the specification has it. */
const RESOURCE_NOT_FOUND = -32002;

/** For answers that this server asks of no client; by default every client would cost one. */
const UNUSED = {
  getValidator() {
    throw new Error("clients are asked for nothing");
  },
};

/** Speaks MCP for a set of tools, over whatever transport it is connected to. */
export function createMcpServer({ version, tools, ownSessionId, originOf }: McpServerOptions): Server {
  const server = new Server(
    { name: "picod", title: "PicoD sandbox", version },
    { capabilities: { tools: {}, resources: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: UNUSED },
  );

  function requestOf(extra: Extra): ToolRequest {
    const { call, abortSignal, answered } = originOf(extra);
    const { signal, _meta: meta = {} } = extra;
    const whole = AbortSignal.any([signal, abortSignal]);
    return { call, meta, ownSessionId, abortSignal: whole, answered, onProgress: progressTo(extra) };
  }

  server.setRequestHandler(ListToolsRequestSchema, (_request, extra) => ({
    tools: tools
      .list(originOf(extra).call.caller)
      .map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
        name,
        title,
        description,
        inputSchema,
        outputSchema,
        annotations,
      })),
  }));

  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    if (!tools.has(params.name)) throw new McpError(ErrorCode.InvalidParams, `no such tool: ${params.name}`);
    return toCallToolResult(await tools.call(params.name, params.arguments ?? {}, requestOf(extra)));
  });

  server.setRequestHandler(ListResourcesRequestSchema, (_request, extra) => ({
    resources: tools.listResources(requestOf(extra)).map(({ uri, name, content, isText }) => ({
      uri,
      name,
      mimeType: mimeType(isText),
      size: content.length,
    })),
  }));

  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }, extra) => {
    const found = await tools.readResource(uri, requestOf(extra));
    if (found === undefined) throw new McpError(RESOURCE_NOT_FOUND, `no such resource, or no longer: ${uri}`);
    return { contents: [toContents(found)] };
  });
  return server;
}

/** Undefined when the client has not asked for it. */
function progressTo({ _meta, sendNotification }: Extra): ToolRequest["onProgress"] {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return (progress) => {
    // One that nobody is there to take is none the worse for it.
    sendNotification({ method: "notifications/progress", params: { ...progress, progressToken } }).catch(() => undefined);
  };
}

function toCallToolResult(answer: ToolAnswer): CallToolResult {
  if ("failure" in answer) {
    const { reason, message } = answer.failure;
    return {
      isError: true,
      content: [{ type: "text", text: `${reason}: ${message}` }],
      _meta: { "picod/error": answer.failure },
    };
  }
  const { structured, links = [] } = answer.result;
  const content = [
    { type: "text" as const, text: JSON.stringify(structured) },
    ...links.map((link) => ({ type: "resource_link" as const, ...link })),
  ];
  return { content, structuredContent: structured as Record<string, unknown> };
}

function toContents({ uri, content, isText }: ReadResource) {
  const type = { uri, mimeType: mimeType(isText) };
  return isText ? { ...type, text: content.toString("utf8") } : { ...type, blob: content.toString("base64") };
}

const mimeType = (isText: boolean) => (isText ? "text/plain" : "application/octet-stream");
