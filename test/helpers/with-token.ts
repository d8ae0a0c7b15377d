import { ask, type PlainAnswer } from "../rpc/support/http1.js";
import type { Daemon } from "./start-daemon.js";

/** One unary RPC in JSON, or with `method` one request of plain HTTP, with this token. */
export function askAs(
  daemon: Daemon,
  token: string,
  path: string,
  body?: object | string,
  method = "POST",
  headers: Record<string, string> = {},
): Promise<PlainAnswer> {
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const type = { "content-type": "application/json" };
  return ask(daemon, path, { method, headers: { ...type, authorization: `Bearer ${token}`, ...headers } }, text);
}
