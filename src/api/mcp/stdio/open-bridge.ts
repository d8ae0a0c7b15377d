import { loadMcpServer } from "../load-mcp-server.js";
import type { RemoteBridge, RemoteBridgeOptions } from "../protocol/main.js";

/** A bridge between standard streams and a daemon's MCP; `start` it. */
export function openBridge(options: RemoteBridgeOptions): RemoteBridge {
  return loadMcpServer().createBridge(options);
}
