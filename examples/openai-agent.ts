/**
 * An agent that works in a sandbox: any model behind an API like OpenAI's, with the sandbox's tools over MCP.
 *
 *     node openai-agent.ts --url http://127.0.0.1:49983 "Which of the files in /workspace is the largest?"
 *
 * OPENAI_API_KEY, and OPENAI_BASE_URL for another endpoint, say where the model is; PICOD_ACCESS_TOKEN is the sandbox's token. Without --url the
 * sandbox is this machine: `picod mcp` is started, with the PICOD_… variables that are set. Needs the packages openai and @modelcontextprotocol/sdk, and Node 22.18 or newer.
 */
import { parseArgs } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import OpenAI from "openai";
import type {
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
  ChatCompletionMessageToolCall,
} from "openai/resources/chat/completions";

const INSTRUCTIONS =
  "You work in a Linux sandbox, with tools for commands and files. Errors of tools tell what to do differently. When the task is done, " +
  "answer without calling a tool.";
/** Of a tool's answer: more than that would crowd out the rest. */
const MAX_RESULT_CHARACTERS = 50_000;
/** A command may run as long as its own limit says; the sandbox ends it. */
const TOOL_TIMEOUT_MS = 15 * 60_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: "string" },
    model: { type: "string", default: "gpt-5-mini" },
    "max-turns": { type: "string", default: "30" },
    /** Names the session: an agent of the same name finds its files and processes again. */
    agent: { type: "string" },
    picod: { type: "string", default: "picod" },
  },
});

/** The sandbox's tools, as the model is to see them. */
async function listFunctions(sandbox: Client): Promise<ChatCompletionFunctionTool[]> {
  const functions: ChatCompletionFunctionTool[] = [];
  let cursor: string | undefined;
  do {
    const page = await sandbox.listTools(cursor === undefined ? {} : { cursor });
    for (const { name, description = "", inputSchema } of page.tools) {
      functions.push({ type: "function", function: { name, description, parameters: inputSchema } });
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return functions;
}

/** What the model is told of a call. Whatever goes wrong is an answer too: it may try something else. */
async function callTool(sandbox: Client, call: ChatCompletionMessageToolCall): Promise<string> {
  if (call.type !== "function") return "error: only functions can be called";
  const { name, arguments: text } = call.function;
  try {
    const params = { name, arguments: JSON.parse(text === "" ? "{}" : text) as Record<string, unknown> };
    const meta = values.agent === undefined ? {} : { _meta: { agent_id: values.agent } };
    const result = await sandbox.callTool({ ...params, ...meta }, undefined, { timeout: TOOL_TIMEOUT_MS });
    const { content, isError = false } = result as CallToolResult;
    const shown = content.map((block) => (block.type === "text" ? block.text : JSON.stringify(block))).join("\n");
    const cut = shown.length > MAX_RESULT_CHARACTERS ? `${shown.slice(0, MAX_RESULT_CHARACTERS)}… (cut)` : shown;
    return isError ? `error: ${cut}` : cut;
  } catch (error) {
    return `error: ${(error as Error).message}`;
  }
}

/** Lets the model call tools until it has an answer. @throws when it has none after so many turns, or the model ends before its time. */
async function work(model: OpenAI, sandbox: Client, task: string, maxTurns: number): Promise<string> {
  const tools = await listFunctions(sandbox);
  const messages: ChatCompletionMessageParam[] = [
    { role: "system", content: INSTRUCTIONS },
    { role: "user", content: task },
  ];
  for (let turn = 1; turn <= maxTurns; turn++) {
    const { choices } = await model.chat.completions.create({ model: values.model, messages, tools });
    const [choice] = choices;
    if (choice === undefined) throw new Error("the model has said nothing");
    const { message, finish_reason: reason } = choice;
    if (reason === "length" || reason === "content_filter") throw new Error(`the model has ended before its answer: ${reason}`);
    messages.push(message);
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) return message.content ?? message.refusal ?? "";
    // One after the other: they may build on each other.
    for (const call of calls) {
      if (call.type === "function")
        process.stderr.write(`[${turn}] ${call.function.name} ${call.function.arguments.slice(0, 200)}\n`);
      messages.push({ role: "tool", tool_call_id: call.id, content: await callTool(sandbox, call) });
    }
  }
  throw new Error(`no answer after ${maxTurns} turns`);
}

function connect(): StreamableHTTPClientTransport | StdioClientTransport {
  if (values.url === undefined) {
    const settings = Object.entries(process.env).filter(([name]) => name === "PATH" || name.startsWith("PICOD_"));
    const env = Object.fromEntries(settings) as Record<string, string>;
    return new StdioClientTransport({ command: values.picod, args: ["mcp"], env, stderr: "ignore" });
  }
  const { PICOD_ACCESS_TOKEN: token = "" } = process.env;
  const requestInit = token === "" ? {} : { headers: { authorization: `Bearer ${token}` } };
  return new StreamableHTTPClientTransport(new URL("/mcp", values.url), { requestInit });
}

async function main(): Promise<void> {
  const task = positionals.join(" ");
  if (task === "") throw new Error('give a task: node openai-agent.ts --url http://127.0.0.1:49983 "Count the files in /etc"');
  const sandbox = new Client({ name: "openai-agent", version: "1" });
  const transport = connect();
  await sandbox.connect(transport as Parameters<Client["connect"]>[0]);
  try {
    process.stdout.write(`${await work(new OpenAI(), sandbox, task, Number(values["max-turns"]))}\n`);
  } finally {
    // Ends what the agent has left running, unless it has a name to come back by.
    if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
    await sandbox.close();
  }
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
