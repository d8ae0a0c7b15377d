import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import type { WebSocket } from "ws";
import type { Requirement } from "../auth/scopes.js";
import type { Call } from "../call.js";

/** One request of plain HTTP on its way through a route. Its functions may be taken off it. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  /** For headers; what is sent goes through the functions below. */
  readonly response: ServerResponse;
  /** What `{name}` in the route's path stands for, percent-decoded; of `{name...}` as it was sent. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: AsyncIterable<Uint8Array>;
  /** All of the body in large pieces, each of which may be used again as soon as the next is asked for. */
  bodyInBulk(): AsyncIterable<Uint8Array>;
  readonly call: Call;
  /** Aborted when the caller has gone or the daemon stops. */
  readonly abortSignal: AbortSignal;
  /** Answers as a whole. */
  send(status: number, headers: OutgoingHttpHeaders, body: string | Uint8Array): void;
  /** Answers with JSON. */
  sendJson(status: number, body: object, headers?: OutgoingHttpHeaders): void;
  /** Begins an answer that goes on, with 200 by default; false when nothing of it was asked for but its head. */
  begin(headers: OutgoingHttpHeaders, status?: number): boolean;
  /** Sends some of it. Resolves when more may follow, or nobody takes it any longer. */
  write(chunk: string | Uint8Array): Promise<void> | undefined;
  /** Sends some of it out of a buffer that is used again: resolves when it has left, or nobody takes it any longer. */
  writeThrough(chunk: Uint8Array): Promise<void>;
  /** Makes the connection a WebSocket of the first of `protocols` that the caller offers. @throws when it asks for none. */
  acceptWebSocket(protocols: readonly string[]): Promise<WebSocket>;
}

export interface HttpRoute {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `/v1/processes/{id}/signal`: a name in braces stands for one segment, `{name...}` at the end for all that is left. */
  readonly path: string;
  /** What it asks of callers. */
  readonly requires: Requirement;
  /** Its body may pause for as long as the caller likes. */
  readonly streamsBody?: true;
  /** It moves the content of files: to the caller with GET, from it otherwise. */
  readonly transfers?: true;
  /** It lasts as long as what it follows, and ends as soon as the shutdown begins. */
  readonly follows?: true;
  /** It becomes a WebSocket, and may be reached with a ticket. */
  readonly isWebSocket?: true;
  /** A signed URL may open it, see auth/signed-urls.ts. */
  readonly isSignable?: true;
  /** How its errors are shown, where that is not by the rule below. */
  readonly showError?: (failure: ConnectError) => ShownError;
  /** The JSON of its errors, where a contract has its own. */
  readonly errorBody?: (status: number, message: string) => object;
  /** Errors it throws are answered with the status of their code and `{code, message, reason?}`. */
  readonly handle: (exchange: HttpExchange) => Promise<void> | void;
}

/** An error in the words of a standard that has its own. */
export interface ShownError {
  readonly status: number;
  /** `NOT_FOUND`. */
  readonly codeText: string;
}

export interface RouteMatch {
  readonly route: HttpRoute;
  readonly parameters: Readonly<Record<string, string>>;
}

export function isMatch(found: RouteMatch | readonly string[] | undefined): found is RouteMatch {
  return found !== undefined && "route" in found;
}

/** Finds routes by path. HEAD is answered by GET. */
export class HttpRoutes {
  readonly #routes: readonly { route: HttpRoute; pattern: RegExp }[];

  constructor(routes: readonly HttpRoute[]) {
    this.#routes = routes.map((route) => ({ route, pattern: patternOf(route.path) }));
  }

  /** Undefined when no route has that path; the methods it takes when none has that method. */
  find(method: string, path: string): RouteMatch | readonly string[] | undefined {
    const matching = this.#routes.filter(({ pattern }) => pattern.test(path));
    if (matching.length === 0) return undefined;
    const wanted = method === "HEAD" ? "GET" : method;
    const found = matching.find(({ route }) => route.method === wanted);
    if (found !== undefined)
      return { route: found.route, parameters: parametersOf(found.route.path, found.pattern.exec(path)?.groups ?? {}) };
    return [...new Set(matching.flatMap(({ route }) => (route.method === "GET" ? ["GET", "HEAD"] : [route.method])))];
  }

  /** Whether some method of a path is everybody's. */
  isPublic(path: string): boolean {
    return this.#routes.some(({ route, pattern }) => route.requires === "public" && pattern.test(path));
  }

  /** How errors of a path are shown, whatever the method. */
  showErrorOf(path: string): Pick<HttpRoute, "showError" | "errorBody"> {
    return this.#routes.find(({ pattern }) => pattern.test(path))?.route ?? {};
  }

  findWebSocket(method: string, path: string): RouteMatch | undefined {
    const found = this.find(method, path);
    return found !== undefined && "route" in found && found.route.isWebSocket ? found : undefined;
  }
}

function patternOf(path: string): RegExp {
  const escaped = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  const pattern = escaped.replace(/\/\{(\w+)\\\.\\\.\\\.\}/, `(?:/(?<$1>.*))?`).replace(/\{(\w+)\}/g, "(?<$1>[^/]+)");
  return new RegExp(`^${pattern}$`, "s");
}

function parametersOf(path: string, groups: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const isRest = (name: string) => path.endsWith(`{${name}...}`);
  return Object.fromEntries(Object.entries(groups).map(([name, value = ""]) => [name, isRest(name) ? value : decode(value)]));
}

/** What is not percent-encoding stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
