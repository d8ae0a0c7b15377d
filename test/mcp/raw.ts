import { type Daemon, TOKEN } from "../helpers/start-daemon.js";

export const VERSION = "2025-11-25";
export const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: "raw", version: "0" } },
};

export type Headers = Readonly<Record<string, string>>;

/** One request by hand. */
export function send(
  daemon: Daemon,
  body: unknown,
  headers: Headers = {},
  method = "POST",
  signal: AbortSignal | null = null,
): Promise<Response> {
  const common = {
    authorization: `Bearer ${TOKEN}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
  const content = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
  return fetch(`${daemon.url}/mcp`, { method, headers: { ...common, ...headers }, signal, ...content });
}

/** The headers of a client that is initialised. */
export async function initialize(daemon: Daemon, headers: Headers = {}): Promise<Headers> {
  const answer = await send(daemon, INITIALIZE, headers);
  await answer.text();
  return { "mcp-session-id": answer.headers.get("mcp-session-id") ?? "", "mcp-protocol-version": VERSION, ...headers };
}

export const callTool = (id: number, name: string, args: object) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

export const exec = (id: number, command: string) => callTool(id, "sandbox_exec", { command });

export const cancelled = (requestId: number) => ({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
