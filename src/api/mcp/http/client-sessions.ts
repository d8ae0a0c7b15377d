import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Caller } from "../../../call.js";
import { PicodError } from "../../../errors/picod-error.js";
import type { HttpSession, HttpSessionOptions } from "../protocol/main.js";
import { callerKey, newSessionId } from "../sessions/session-key.js";
import { EventLog } from "./event-log.js";
import type { PendingPost } from "./pending-post.js";

/** Clients seldom say that they go. */
const MAX_CLIENTS = 1000;

/** One client, from `initialize` on: not to be confused with the session of the sandbox, which it may share with others of its caller. */
export interface ClientSession {
  readonly http: HttpSession;
  readonly caller: Caller;
  /** The sandbox session of its requests that name none. */
  readonly ownSessionId: string;
  readonly posts: Set<PendingPost>;
  requestsInProgress: number;
  isClosed: boolean;
  idle: NodeJS.Timeout | undefined;
}

export interface ClientSessionsParts {
  readonly open: (options: Pick<HttpSessionOptions, "ownSessionId" | "eventStore" | "onClose">) => Promise<HttpSession>;
  readonly onClose: (client: Pick<ClientSession, "caller" | "ownSessionId">) => void;
  readonly idleTimeoutMs: number;
}

/** Every client that is connected, by the id that it shows in `Mcp-Session-Id`. */
export class ClientSessions {
  readonly events = new EventLog();
  readonly #parts: ClientSessionsParts;
  /** Who was used last is last. */
  readonly #clients = new Map<string, ClientSession>();

  constructor(parts: ClientSessionsParts) {
    this.#parts = parts;
  }

  /** Undefined when it has ended, or is another caller's. */
  find(id: string, caller: Caller): ClientSession | undefined {
    const found = this.#clients.get(id);
    return found !== undefined && callerKey(found.caller) === callerKey(caller) ? found : undefined;
  }

  /** One that has no id yet: `add` follows. @throws SESSION_LIMIT_REACHED. */
  async open(caller: Caller): Promise<ClientSession> {
    if (this.#clients.size >= MAX_CLIENTS && !this.#closeOneThatIsIdle()) {
      const message = `cannot open a session: ${MAX_CLIENTS} clients are connected`;
      throw new PicodError("SESSION_LIMIT_REACHED", message, { limit: "clients", value: String(MAX_CLIENTS) });
    }
    const posts = new Set<PendingPost>();
    const onStored = (message: JSONRPCMessage) => {
      if ("result" in message || "error" in message) for (const post of posts) post.answered(message.id);
    };
    const ownSessionId = newSessionId();
    const eventStore = this.events.storeFor(posts, onStored);
    const onClose = () => this.#closed(client);
    const http = await this.#parts.open({ ownSessionId, eventStore, onClose });
    const client: ClientSession = { http, caller, ownSessionId, posts, requestsInProgress: 0, isClosed: false, idle: undefined };
    return client;
  }

  /** Lets others find a client that is initialised. */
  add(client: ClientSession): void {
    const { id } = client.http;
    if (id !== undefined && !client.isClosed) this.#clients.set(id, client);
  }

  /** Runs one request of a client. */
  async use<T>(client: ClientSession, run: () => Promise<T>): Promise<T> {
    clearTimeout(client.idle);
    client.requestsInProgress++;
    try {
      return await run();
    } finally {
      client.requestsInProgress--;
      const { id } = client.http;
      if (client.requestsInProgress === 0 && id !== undefined && this.#clients.delete(id)) {
        this.#clients.set(id, client);
        client.idle = setTimeout(() => void client.http.close(), this.#parts.idleTimeoutMs).unref();
      }
    }
  }

  #closeOneThatIsIdle(): boolean {
    for (const client of this.#clients.values()) {
      if (client.requestsInProgress > 0) continue;
      void client.http.close();
      return true;
    }
    return false;
  }

  #closed(client: ClientSession): void {
    client.isClosed = true;
    clearTimeout(client.idle);
    this.events.forget(client.posts);
    if (client.http.id !== undefined && this.#clients.delete(client.http.id)) this.#parts.onClose(client);
  }
}
