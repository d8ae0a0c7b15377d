import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { PICOD } from "../helpers/start-daemon.js";

const { PATH = "" } = process.env;

/** The official client with `picod mcp` as its server. Use with `await using`. */
export class StdioClient implements AsyncDisposable {
  readonly client = new Client({ name: "test", version: "0" });
  readonly transport: StdioClientTransport;
  log = "";

  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.transport = new StdioClientTransport({ command: PICOD, args: ["mcp", ...args], env: { PATH, ...env }, stderr: "pipe" });
    this.transport.stderr?.on("data", (chunk: Buffer) => {
      this.log += chunk;
    });
  }

  get pid(): number {
    return this.transport.pid ?? 0;
  }

  /** The structured content of a call that succeeds. @throws with its text when it fails. */
  async call(name: string, args: object = {}, options?: Parameters<Client["callTool"]>[2]): Promise<Record<string, unknown>> {
    const params = { name, arguments: args as Record<string, unknown> };
    const result = (await this.client.callTool(params, undefined, options)) as CallToolResult;
    if (result.isError) throw new Error((result.content[0] as { text: string }).text);
    return result.structuredContent as Record<string, unknown>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

export async function connectStdio(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<StdioClient> {
  const stdio = new StdioClient(args, env);
  await stdio.client.connect(stdio.transport);
  return stdio;
}

/** `picod mcp` with what it has written, for what the official client does not show. */
export function spawnMcp(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(PICOD, ["mcp", ...args], { env: { PATH, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(child, "close").then(([code, signal]) => code ?? signal);
  return { child, stdout: text(child.stdout), stderr: text(child.stderr), ended };
}

/** The first lines of a client. */
export const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "0" } },
};

/** Sends a message and resolves with the next line. */
export async function ask(child: ChildProcess, message: object): Promise<unknown> {
  child.stdin?.write(`${JSON.stringify(message)}\n`);
  const [line] = await once(child.stdout as NonNullable<typeof child.stdout>, "data");
  return JSON.parse(String(line));
}
