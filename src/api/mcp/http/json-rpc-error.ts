/** Codes that MCP's servers use besides those of JSON-RPC. */
export const BAD_REQUEST = -32000;
export const SESSION_NOT_FOUND = -32001;
export const INVALID_REQUEST = -32600;
export const PARSE_ERROR = -32700;

/** An error that is about no request in particular. */
export function jsonRpcError(code: number, message: string): object {
  return { jsonrpc: "2.0", error: { code, message }, id: null };
}
