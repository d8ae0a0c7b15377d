import type { RemoteBridge, RemoteBridgeOptions } from "../protocol/main.js";

/** A bridge between standard streams and a daemon's MCP; `start` it. */
export function openBridge(options: RemoteBridgeOptions): RemoteBridge {
  // The build puts it beside the daemon.
  const { createBridge } = require("mcp-server") as typeof import("../protocol/main.js");
  return createBridge(options);
}
