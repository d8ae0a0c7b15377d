import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

/** Whether a request that failed has not left: it may be sent again, whatever it does. */
export function isUnsent(error: unknown): boolean {
  const { syscall } = error as { syscall?: string };
  return syscall === "connect" || syscall === "getaddrinfo";
}

/** The daemon has answered with an HTTP status that is no success; undefined: with none. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof StreamableHTTPError ? error.code : undefined;
}

/** For a person: what went wrong with a daemon, in one line. */
export function explainFailure(url: URL, error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  const status = statusOf(error);
  if (status === undefined) return `cannot reach ${url}: ${message === "" ? code : message}`;
  if (status === 401) return `${url} refuses the token: it is wrong, expired or missing`;
  if (status === 403) return `${url} refuses: ${firstLine(message)}`;
  if (status === 404) return `${url} has no MCP: not found`;
  return `${url} answered with HTTP status ${status}: ${firstLine(message)}`;
}

function firstLine(message: string): string {
  const [line = ""] = message.replace(/^.*Error POSTing to endpoint: /s, "").split("\n");
  return line.slice(0, 300);
}
