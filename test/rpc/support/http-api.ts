import { once } from "node:events";
import { type ClientOptions, WebSocket } from "ws";
import { eventually } from "../../helpers/eventually.js";
import { type Daemon, TOKEN } from "../../helpers/start-daemon.js";
import { ask, type PlainAnswer } from "./http1.js";

export interface Answer extends PlainAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: what it should hold is what the tests are about.
  readonly json: any;
}

/** One request with the token on a connection of its own; an object becomes JSON. */
export async function call(
  daemon: Daemon,
  method: string,
  path: string,
  body?: object | string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const type = typeof body === "object" ? { "content-type": "application/json" } : {};
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const length = text === undefined ? {} : { "content-length": Buffer.byteLength(text) };
  const options = { method, headers: { authorization: `Bearer ${TOKEN}`, ...type, ...length, ...headers } };
  const answer = await ask(daemon, path, options, text);
  const isJson = answer.headers["content-type"] === "application/json" && answer.body !== "";
  return { ...answer, json: isJson ? JSON.parse(answer.body) : undefined };
}

/** Starts a process and returns its id. */
export async function create(daemon: Daemon, body: object): Promise<string> {
  const { status, json, body: text } = await call(daemon, "POST", "/v1/processes", body);
  if (status !== 201) throw new Error(text);
  return json.id;
}

export async function ticketOf(daemon: Daemon): Promise<string> {
  return (await call(daemon, "POST", "/v1/tickets")).json.ticket;
}

/** A viewer of a process, and everything that it was shown. */
export class Viewer implements Disposable {
  readonly socket: WebSocket;
  binary = Buffer.alloc(0);
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly control: any[] = [];
  readonly messages: Buffer[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(url: string, protocols: string[], options: ClientOptions) {
    this.socket = new WebSocket(url, protocols, options);
    this.socket.on("message", (message: Buffer | ArrayBuffer, isBinary: boolean) => {
      const data = Buffer.isBuffer(message) ? message : Buffer.from(message);
      this.messages.push(data);
      if (isBinary) this.binary = Buffer.concat([this.binary, data]);
      else this.control.push(JSON.parse(data.toString()));
    });
    this.closed = new Promise((resolve) =>
      this.socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() })),
    );
    this.socket.on("error", () => undefined);
  }

  get text(): string {
    return this.binary.toString();
  }

  shows(text: string | RegExp): Promise<void> {
    const matches = () => (typeof text === "string" ? this.text.includes(text) : text.test(this.text));
    return eventually(() => `${text} is shown, not ${JSON.stringify(this.text)}`, matches);
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}

export interface ViewOptions {
  readonly query?: string;
  readonly protocols?: string[];
  readonly headers?: Record<string, string>;
}

/** Opens a WebSocket with the token in a header. Rejects with the status and body of the refusal. */
export async function view(
  daemon: Daemon,
  id: string,
  { query = "", protocols = [], headers }: ViewOptions = {},
): Promise<Viewer> {
  const url = `${daemon.url.replace("http", "ws")}/v1/processes/${id}/connect${query}`;
  const viewer = new Viewer(url, protocols, { headers: headers ?? { authorization: `Bearer ${TOKEN}` } });
  const refused = once(viewer.socket, "unexpected-response").then(async ([, response]) => {
    let body = "";
    for await (const chunk of response.setEncoding("utf8")) body += chunk;
    throw new Error(`${response.statusCode} ${body}`);
  });
  await Promise.race([once(viewer.socket, "open"), refused]);
  return viewer;
}

export interface ServerSentEvent {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly data: any;
}

/** Reads server-sent events as browsers do, until `enough`, or the end. */
export async function readEvents(
  daemon: Daemon,
  enough: (events: readonly ServerSentEvent[]) => boolean,
  headers: Record<string, string> = {},
  onOpen: () => unknown = () => undefined,
): Promise<ServerSentEvent[]> {
  const abort = new AbortController();
  const response = await fetch(`${daemon.url}/v1/events`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    signal: abort.signal,
  });
  if (response.headers.get("content-type") !== "text/event-stream") throw new Error(await response.text());
  const events: ServerSentEvent[] = [];
  const decoder = new TextDecoder();
  let buffered = "";
  let opened = false;
  for await (const chunk of response.body ?? []) {
    buffered += decoder.decode(chunk, { stream: true });
    const blocks = buffered.split("\n\n");
    buffered = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)));
      // What comes in one piece with the last that was waited for does not count.
      if (fields.data === undefined || enough(events)) continue;
      events.push({ id: fields.id, event: fields.event, data: JSON.parse(fields.data) });
    }
    if (!opened) onOpen();
    opened = true;
    if (enough(events)) break;
  }
  abort.abort();
  return events;
}
