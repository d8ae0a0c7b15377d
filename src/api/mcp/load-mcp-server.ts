/** All that needs the SDK. The build puts it beside the daemon, which does not load it before it is used. */
export function loadMcpServer(): typeof import("./protocol/main.js") {
  return require("mcp-server");
}
