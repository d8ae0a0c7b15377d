import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Daemon, TOKEN } from "../helpers/start-daemon.js";

export interface McpClientOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with every call. */
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly fetch?: typeof fetch;
  readonly url?: string;
}

/** The official client, connected to a daemon. Use with `await using`. */
export class McpClient implements AsyncDisposable {
  readonly client = new Client({ name: "test", version: "0" });
  readonly transport: StreamableHTTPClientTransport;
  readonly #meta: Readonly<Record<string, unknown>> | undefined;

  constructor(daemon: Daemon, options: McpClientOptions) {
    const { token = TOKEN, headers = {}, meta, fetch: ownFetch, url = `${daemon.url}/mcp` } = options;
    this.#meta = meta;
    this.transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { ...headers, authorization: `Bearer ${token}` } },
      reconnectionOptions: {
        initialReconnectionDelay: 50,
        maxReconnectionDelay: 200,
        reconnectionDelayGrowFactor: 1.5,
        maxRetries: 5,
      },
      ...(ownFetch && { fetch: ownFetch }),
    });
  }

  async connect(): Promise<this> {
    await this.client.connect(this.transport as Parameters<Client["connect"]>[0]);
    return this;
  }

  /** The structured content of a call that succeeds. @throws with its text when it fails. */
  async call(name: string, args: object = {}, options?: Parameters<Client["callTool"]>[2]): Promise<Record<string, unknown>> {
    const result = await this.tryCall(name, args, options);
    if (result.isError) throw new Error((result.content[0] as { text: string }).text);
    return result.structuredContent as Record<string, unknown>;
  }

  async tryCall(name: string, args: object = {}, options?: Parameters<Client["callTool"]>[2]): Promise<CallToolResult> {
    const meta = this.#meta === undefined ? {} : { _meta: this.#meta };
    const params = { name, arguments: args as Record<string, unknown>, ...meta };
    return (await this.client.callTool(params, undefined, options)) as CallToolResult;
  }

  /** What programs are told of a call that fails. */
  async failure(name: string, args: object = {}): Promise<unknown> {
    const { isError, _meta } = await this.tryCall(name, args);
    return isError ? _meta?.["picod/error"] : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transport.terminateSession();
    await this.client.close();
  }
}

export function connectMcp(daemon: Daemon, options: McpClientOptions = {}): Promise<McpClient> {
  return new McpClient(daemon, options).connect();
}
