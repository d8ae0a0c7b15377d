import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  isInitializedNotification,
  isInitializeRequest,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { explainFailure, isUnsent, statusOf } from "./failure.js";
import { PendingRequests } from "./pending-requests.js";

export interface BridgeOptions {
  /** Of the daemon's MCP. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: FetchLike;
  readonly input: Readable;
  readonly output: Writable;
  /** On the input. */
  readonly maxMessageBytes: number;
  readonly warn: (message: string) => void;
  /** Called once when the daemon is not there, or refuses, at the beginning. @param why for a person. */
  readonly onRefused: (why: string) => void;
}

/** So long a daemon that was there before may be away, before what waits for it is given up. */
const AWAY_MS = 30_000;
const RETRY_MS = 250;
const FAREWELL_MS = 2_000;
const RECONNECTION = {
  initialReconnectionDelay: RETRY_MS,
  maxReconnectionDelay: 2_000,
  reconnectionDelayGrowFactor: 2,
  // Whoever waits is told by the bridge, when it is too long.
  maxRetries: Number.MAX_SAFE_INTEGER,
};
/** -32000 is the first that JSON-RPC leaves to servers. */
const CONNECTION_LOST = -32_000;
const MAY_BE_MADE = "the connection broke before the answer: whether the call was made is not known";
/** The SDK takes this for a stream that the server does not offer, and asks no more. */
const NO_STREAM = 405;

/**
 * Passes MCP between standard streams and a daemon's streamable HTTP. A stream that breaks is taken up again where it was; a daemon that was
 * started again is introduced to the client anew. What may have been lost is an error that says so: no call is made twice.
 */
export class Bridge {
  readonly #options: BridgeOptions;
  readonly #local: StdioServerTransport;
  readonly #pending = new PendingRequests();
  /** Since when the stream of a request cannot be taken up again, on the clock of performance.now(). */
  readonly #awaySince = new Map<RequestId, number>();
  #remote: StreamableHTTPClientTransport;
  #initialize: JSONRPCRequest | undefined;
  #isConnected = false;
  #closed = false;
  #renewals = 0;
  #renewal: Promise<void> | undefined;
  #onRenewed: ((answer: JSONRPCMessage) => void) | undefined;

  constructor(options: BridgeOptions) {
    this.#options = options;
    this.#local = new StdioServerTransport(options.input, options.output, { maxBufferSize: options.maxMessageBytes });
    this.#local.onmessage = (message) => void this.#forward(message);
    this.#local.onerror = (error) => options.warn(`what came is no message of MCP: ${error.message}`);
    this.#remote = this.#connect();
  }

  async start(): Promise<void> {
    await this.#remote.start();
    await this.#local.start();
  }

  /** Takes leave of the daemon, which ends what belongs to the session. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.race([this.#remote.terminateSession().catch(() => undefined), sleep(FAREWELL_MS)]);
    await this.#remote.close();
    await this.#local.close();
  }

  #connect(): StreamableHTTPClientTransport {
    const { url, headers } = this.#options;
    const remote = new StreamableHTTPClientTransport(url, {
      requestInit: { headers },
      reconnectionOptions: RECONNECTION,
      fetch: (target, init) => this.#fetch(target, init),
    });
    remote.onmessage = (message) => this.#receive(remote, message);
    return remote;
  }

  #receive(remote: StreamableHTTPClientTransport, message: JSONRPCMessage): void {
    if ("method" in message) {
      void this.#local.send(message);
      return;
    }
    const version = "result" in message ? message.result.protocolVersion : undefined;
    if (typeof version === "string") remote.setProtocolVersion(version);
    this.#isConnected = true;
    if (message.id === this.#renewalId) this.#onRenewed?.(message);
    else if (message.id !== undefined && this.#pending.take(message.id)) void this.#local.send(message);
  }

  async #forward(message: JSONRPCMessage): Promise<void> {
    const id = isJSONRPCRequest(message) ? message.id : undefined;
    if (isInitializeRequest(message)) this.#initialize = message as JSONRPCRequest;
    if (id !== undefined) this.#pending.add(id);
    try {
      await this.#deliver(message, id);
    } catch (error) {
      if (this.#closed) return;
      const isLost = this.#isConnected && statusOf(error) === undefined && !isUnsent(error);
      const why = isLost ? `${MAY_BE_MADE} (${(error as Error).message})` : explainFailure(this.#options.url, error);
      if (id === undefined) this.#options.warn(why);
      else this.#fail(id, why);
      if (!this.#isConnected) this.#options.onRefused(why);
    }
  }

  /** Sends a message, as often as it takes as long as it cannot have arrived. */
  async #deliver(message: JSONRPCMessage, id: RequestId | undefined): Promise<void> {
    const giveUpAt = performance.now() + AWAY_MS;
    for (let isRenewed = false; ; ) {
      await this.#renewal;
      const remote = this.#remote;
      try {
        return await remote.send(message, id === undefined ? {} : this.#followed(id));
      } catch (error) {
        if (this.#closed || !this.#isConnected) throw error;
        if (statusOf(error) === 404 && !isRenewed && !isInitializedNotification(message)) {
          isRenewed = true;
          if (remote === this.#remote) this.#renewal ??= this.#renew();
          continue;
        }
        if (!isUnsent(error) || performance.now() > giveUpAt) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  #followed(id: RequestId) {
    return { onresumptiontoken: (eventId: string) => this.#pending.eventCame(id, eventId) };
  }

  get #renewalId(): string {
    return `picod-bridge-${this.#renewals}`;
  }

  /** Makes a session with a daemon that knows the old one no longer, as the client has asked for it. */
  async #renew(): Promise<void> {
    this.#options.warn("the daemon has ended the session, or was started again: what ran in the session is gone");
    const { allAccepted } = this.#pending;
    await this.#remote.close();
    for (const id of allAccepted) this.#fail(id, "the daemon has ended the session before it answered");
    try {
      this.#renewals++;
      this.#remote = this.#connect();
      await this.#remote.start();
      const answered = new Promise<JSONRPCMessage>((resolve) => {
        this.#onRenewed = resolve;
      });
      await this.#remote.send({ ...(this.#initialize as JSONRPCRequest), id: this.#renewalId });
      const answer = await Promise.race([answered, sleep(AWAY_MS)]);
      if (answer === undefined || "error" in answer) this.#options.warn("the daemon does not open another session");
      else await this.#remote.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    } catch (error) {
      this.#options.warn(explainFailure(this.#options.url, error));
    } finally {
      this.#renewal = undefined;
    }
  }

  /** Watches what the SDK does not tell: which request's stream has ended, and which cannot be taken up again. */
  async #fetch(target: string | URL, init: RequestInit = {}): Promise<Response> {
    const lastEventId = new Headers(init.headers).get("last-event-id");
    if (lastEventId !== null) return this.#resume(target, init, lastEventId);
    const response = await this.#options.fetch(target, init);
    const id = requestIdOf(init.body);
    if (id === undefined || !response.ok) return response;
    this.#pending.accepted(id);
    return watched(response, () => {
      if (!this.#pending.canResume(id)) this.#fail(id, MAY_BE_MADE);
    });
  }

  async #resume(target: string | URL, init: RequestInit, lastEventId: string): Promise<Response> {
    const id = this.#pending.waitingAfter(lastEventId);
    if (id === "nobody") return new Response(null, { status: NO_STREAM });
    const why = await this.#options.fetch(target, init).then(
      (response) => {
        if (response.ok || response.status === 409) return response;
        return explainStatus(response.status);
      },
      (error: unknown) => {
        if (id === undefined) throw error;
        const since = this.#awaySince.get(id) ?? performance.now();
        this.#awaySince.set(id, since);
        if (performance.now() - since < AWAY_MS) throw error;
        return explainFailure(this.#options.url, error);
      },
    );
    if (id !== undefined) this.#awaySince.delete(id);
    if (typeof why !== "string") return why;
    if (id !== undefined) this.#fail(id, why);
    return new Response(null, { status: NO_STREAM });
  }

  #fail(id: RequestId, message: string): void {
    if (!this.#pending.take(id) || this.#closed) return;
    this.#options.warn(message);
    void this.#local.send({ jsonrpc: "2.0", id, error: { code: CONNECTION_LOST, message } });
  }
}

function explainStatus(status: number): string {
  const why = status === 404 ? "it has ended the session, or was started again" : `HTTP status ${status}`;
  return `the connection broke, and the daemon does not go on with the answer: ${why}`;
}

function requestIdOf(body: RequestInit["body"]): RequestId | undefined {
  if (typeof body !== "string") return undefined;
  const message = JSON.parse(body) as { id?: RequestId; method?: string };
  return message.method === undefined ? undefined : message.id;
}

/** The same response. @param onEnd called when what has come of it was taken, whether it is whole or not. */
function watched(response: Response, onEnd: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  async function* chunks(from: ReadableStream<Uint8Array>) {
    try {
      yield* from;
    } finally {
      // Behind whoever looks into the last of it.
      setImmediate(onEnd);
    }
  }
  return new Response(ReadableStream.from(chunks(body)) as ReadableStream<Uint8Array>, { status, statusText, headers });
}
