import type { Readable, Writable } from "node:stream";
import { type Call, type Caller, newCall } from "../../../call.js";
import { UNTRACED } from "../../../trace.js";
import { createToolServer, type McpParts } from "../create-tool-server.js";
import { loadMcpServer } from "../load-mcp-server.js";
import { newSessionId } from "../sessions/session-key.js";

/** What a client has started a server with. */
export interface StandardStreams {
  readonly input: Readable;
  /** Nothing but the protocol is written there. */
  readonly output: Writable;
}

/**
 * Serves the tools of this sandbox to the one client that has the other ends of the streams. Resolves with the function that cancels the calls
 * in progress and answers nothing any more. @param callerNow who it is, asked for each request: a policy may change.
 * @param onError told of what is no message.
 */
export async function serveStdio(
  parts: McpParts,
  callerNow: () => Caller,
  streams: StandardStreams,
  onError: (error: Error) => void,
): Promise<() => Promise<void>> {
  const { createSchemaCompiler, openStdioSession } = loadMcpServer();
  const { tools } = createToolServer(parts, createSchemaCompiler());
  const closed = new AbortController();
  let requests = 0;
  const originOf = () => ({ call: callOf(callerNow(), ++requests), abortSignal: closed.signal });
  const close = await openStdioSession({
    version: parts.version,
    tools,
    ownSessionId: newSessionId(),
    originOf,
    ...streams,
    onError,
  });
  return async () => {
    closed.abort();
    await close();
  };
}

function callOf(caller: Caller, request: number): Call {
  return { ...newCall(`stdio-${request}`, "stdio", UNTRACED), caller, hasArrived: true, procedure: "mcp" };
}
