import type { Realm } from "../../../refusal.js";

/** Pages of other origins are refused, as MCP's specification asks, unless they are named. */
export function createMcpRealm(allowedOrigins: readonly string[]): Realm {
  return { crossOrigin: allowedOrigins, covers: (_method, path) => path === "/mcp" };
}
