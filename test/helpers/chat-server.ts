import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/** A request of the API for chats, as far as tests look at it. */
export interface ChatRequest {
  readonly model: string;
  readonly tools: readonly { readonly type: string; readonly function: { readonly name: string; readonly parameters: object } }[];
  readonly messages: readonly { readonly role: string; readonly content: string; readonly tool_call_id?: string }[];
}

/** What the model says: its answer, or functions with their arguments. */
export type Turn = string | readonly (readonly [name: string, args: object | string])[];

/** Speaks the chat completions of OpenAI's API, and says what it is told to. Use with `await using`. */
export class ChatServer implements AsyncDisposable {
  readonly requests: ChatRequest[] = [];
  readonly apiKey = "test-key";
  readonly #script: (request: ChatRequest) => Turn;
  #calls = 0;
  readonly #server = createServer(async (request, response) => {
    const send = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const body = (await json(request)) as ChatRequest;
    if (request.headers.authorization !== `Bearer ${this.apiKey}`) return send(401, { error: { message: "Incorrect API key" } });
    if (request.method !== "POST" || request.url !== "/v1/chat/completions")
      return send(404, { error: { message: "not found" } });
    this.requests.push(body);
    return send(200, this.#completion(body));
  });

  private constructor(script: (request: ChatRequest) => Turn) {
    this.#script = script;
  }

  /** @param script says what the model answers to a request. */
  static async start(script: (request: ChatRequest) => Turn): Promise<ChatServer> {
    const chat = new ChatServer(script);
    chat.#server.listen(0, "127.0.0.1");
    await once(chat.#server, "listening");
    return chat;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #completion(request: ChatRequest): object {
    const turn = this.#script(request);
    const toCall = ([name, args]: Exclude<Turn, string>[number]) => ({
      id: `call_${++this.#calls}`,
      type: "function",
      function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
    });
    const said = typeof turn === "string" ? { content: turn } : { content: null, tool_calls: turn.map(toCall) };
    return {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 0,
      model: request.model,
      choices: [
        {
          index: 0,
          message: { role: "assistant", refusal: null, ...said },
          logprobs: null,
          finish_reason: typeof turn === "string" ? "stop" : "tool_calls",
        },
      ],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    };
  }
}
