import { Slots } from "../../../filesystem/searching/slots.js";
import type { HttpExchange, HttpRoute } from "../../http-route.js";
import { BodyTooLarge, readJson } from "../../json-body.js";
import { createToolServer, type McpParts } from "../create-tool-server.js";
import { loadMcpServer } from "../load-mcp-server.js";
import { callerOf } from "../tools/caller.js";
import { type ClientSession, ClientSessions } from "./client-sessions.js";
import { BAD_REQUEST, INVALID_REQUEST, jsonRpcError, PARSE_ERROR, SESSION_NOT_FOUND } from "./json-rpc-error.js";
import { cancelledIds, isInitialize, whyInvalid } from "./messages.js";
import { PendingPost } from "./pending-post.js";
import { type RelayOptions, relay } from "./relay.js";

/** What of a request the SDK looks at. */
const HEADERS = ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
/** How much longer a file may be in JSON: `é` is two bytes, and six as Python escapes it. */
const ESCAPED_SIZE = 3;
/** Around the content of a file. */
const ENVELOPE_BYTES = 1024 * 1024;
/** Each is in memory several times while it is taken apart: as it came, as text, as JSON and as what it means. */
const LARGE_BODIES_AT_ONCE = 4;

/** Streamable HTTP of the Model Context Protocol. Nothing of it is loaded before the first request. */
export function createMcpRoutes(parts: McpParts): HttpRoute[] {
  let endpoint: McpEndpoint | undefined;
  const handled = (handle: (endpoint: McpEndpoint, exchange: HttpExchange) => Promise<void>) => (exchange: HttpExchange) => {
    endpoint ??= new McpEndpoint(parts);
    return handle(endpoint, exchange);
  };
  const common = {
    path: "/mcp",
    requires: "any",
    errorBody: (_status: number, message: string) => jsonRpcError(BAD_REQUEST, message),
  } as const;
  return [
    { ...common, method: "POST", handle: handled((mcp, exchange) => mcp.post(exchange)) },
    { ...common, method: "GET", follows: true, handle: handled((mcp, exchange) => mcp.get(exchange)) },
    { ...common, method: "DELETE", handle: handled((mcp, exchange) => mcp.delete(exchange)) },
  ];
}

class McpEndpoint {
  readonly #maxFileSizeBytes: number;
  readonly #maxBodyBytes: number;
  readonly #clients: ClientSessions;
  readonly #largeBodies = new Slots(LARGE_BODIES_AT_ONCE);

  constructor(parts: McpParts) {
    const { createSchemaCompiler, openHttpSession } = loadMcpServer();
    const { tools, sessions } = createToolServer(parts, createSchemaCompiler());
    const { config, version } = parts;
    this.#maxFileSizeBytes = config.mcpMaxFileSizeBytes;
    this.#maxBodyBytes = ESCAPED_SIZE * config.mcpMaxFileSizeBytes + ENVELOPE_BYTES;
    this.#clients = new ClientSessions({
      open: (options) => openHttpSession({ ...options, version, tools }),
      onClose: ({ caller, ownSessionId }) => void sessions.close(caller, ownSessionId, "its client has gone"),
      idleTimeoutMs: config.sessionIdleTimeoutMs,
    });
  }

  async post(exchange: HttpExchange): Promise<void> {
    let slot: Disposable | undefined;
    const whenLarge = async () => {
      slot = await this.#largeBodies.take(exchange.abortSignal);
    };
    try {
      await this.#post(exchange, whenLarge);
    } finally {
      slot?.[Symbol.dispose]();
    }
  }

  async #post(exchange: HttpExchange, whenLarge: () => Promise<void>): Promise<void> {
    const isKnown = exchange.request.headers["mcp-session-id"] !== undefined;
    const known = isKnown ? this.#find(exchange) : undefined;
    if (isKnown && known === undefined) return;
    let body: unknown;
    try {
      body = await readJson(exchange, { maxBytes: this.#maxBodyBytes, whenLarge });
    } catch (error) {
      const isTooLarge = error instanceof BodyTooLarge;
      const limit = isTooLarge ? `: a file may have max_file_size_bytes ${this.#maxFileSizeBytes}` : "";
      exchange.sendJson(isTooLarge ? 413 : 400, jsonRpcError(PARSE_ERROR, (error as Error).message + limit));
      return;
    }
    const client = known ?? (isInitialize(body) ? await this.#clients.open(callerOf(exchange.call)) : this.#find(exchange));
    if (client === undefined) return;
    const version = exchange.request.headers["mcp-protocol-version"]?.toString() ?? "";
    const invalid = whyInvalid(body, version, (id) => [...client.posts].some((each) => each.isInUse(id)));
    if (invalid !== undefined) {
      exchange.sendJson(400, jsonRpcError(INVALID_REQUEST, invalid));
      return;
    }
    const post = new PendingPost(body, {
      onCancelled: (ids) => void client.http.endStream(ids).then(() => post.delivered()),
      onOver: () => client.posts.delete(post),
    });
    client.posts.add(post);
    try {
      await this.#clients.use(client, () => this.#answer(client, exchange, post, body));
    } finally {
      // It was not initialised after all.
      if (client.http.id === undefined) await client.http.close();
    }
  }

  /** The stream of what no request has asked for, or with `Last-Event-ID` one that has broken, from there on. */
  async get(exchange: HttpExchange): Promise<void> {
    const client = this.#find(exchange);
    if (client === undefined) return;
    const lastEventId = exchange.request.headers["last-event-id"]?.toString();
    const streamId = lastEventId === undefined ? undefined : this.#clients.events.streamOf(client.posts, lastEventId);
    const post = [...client.posts].find((each) => each.streamId !== undefined && each.streamId === streamId);
    post?.resumed();
    await this.#clients.use(client, () => this.#answer(client, exchange, post, undefined, lastEventId !== undefined));
  }

  async delete(exchange: HttpExchange): Promise<void> {
    const client = this.#find(exchange);
    if (client !== undefined) await this.#answer(client, exchange, undefined, undefined);
  }

  /** @param isResumed a stream whose requests are answered ends with what is left of it. */
  async #answer(
    client: ClientSession,
    exchange: HttpExchange,
    post: PendingPost | undefined,
    body: unknown,
    isResumed = false,
  ): Promise<void> {
    const { call, abortSignal } = exchange;
    // Those of a batch leave together: none of them may wait for another one to leave.
    const answered = Array.isArray(body) ? undefined : post?.over;
    const origin = { call, abortSignal: post?.abortSignal ?? abortSignal, answered };
    const response = await client.http.handle(toWebRequest(exchange), body, origin);
    if (response.ok) for (const id of cancelledIds(body)) for (const each of client.posts) each.cancelled(id);
    // Before it knows its id, and comes back with it.
    this.#clients.add(client);
    const options: RelayOptions = {
      onEvent: (id) => {
        if (post !== undefined) post.streamId ??= this.#clients.events.streamOf(client.posts, id);
      },
      isOver: () => isResumed && (post?.isAnswered ?? true),
    };
    let isDelivered = false;
    try {
      isDelivered = await relay(exchange, response, options);
    } finally {
      if (isDelivered) post?.delivered();
      else post?.connectionLost();
    }
  }

  /** Undefined when there is none, which the caller has been told. */
  #find(exchange: HttpExchange): ClientSession | undefined {
    const id = exchange.request.headers["mcp-session-id"]?.toString();
    const found = id === undefined ? undefined : this.#clients.find(id, callerOf(exchange.call));
    if (found !== undefined) return found;
    if (id === undefined)
      exchange.sendJson(400, jsonRpcError(BAD_REQUEST, "the header Mcp-Session-Id is missing: initialize first"));
    else exchange.sendJson(404, jsonRpcError(SESSION_NOT_FOUND, "no such session, or no longer: initialize again"));
    return undefined;
  }
}

function toWebRequest({ request: { method = "", headers } }: HttpExchange): Request {
  const named = HEADERS.map((name) => [name, headers[name]?.toString()]);
  const given = named.filter((pair): pair is [string, string] => pair[1] !== undefined);
  return new Request("http://localhost/mcp", { method, headers: given });
}
