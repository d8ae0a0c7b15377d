import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";

/** Longer breaks are made between attempts the longer the daemon is away. */
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5_000;
/** Keys that wait for a connection; whoever types more has not seen that there is none. */
const MAX_WAITING = 1_000;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const login = element<HTMLFormElement>("login");
const status = element<HTMLOutputElement>("status");

/** In memory alone: neither storage nor the address ever holds the token. */
let token = "";

login.addEventListener("submit", (event) => {
  event.preventDefault();
  token = element<HTMLInputElement>("token").value;
  element<HTMLInputElement>("token").value = "";
  open().catch((error: Error) => {
    element("problem").textContent = error.message;
  });
});

async function call(method: string, path: string, body?: object): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const answer = response.status === 204 ? {} : await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

/** Joins the process that the address names, else starts a shell and puts its name there, for other viewers. */
async function open(): Promise<void> {
  const terminal = new Terminal({ cursorBlink: true, scrollback: 10_000 });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  const named = new URLSearchParams(location.hash.slice(1)).get("process");
  const id = named ?? (await call("POST", "/v1/processes", { pty: { rows: 24, cols: 80 }, label: "terminal page" })).id;
  await call("GET", `/v1/processes/${id}`);
  location.hash = `process=${id}`;
  login.hidden = true;
  const place = element("terminal");
  place.hidden = false;
  terminal.open(place);
  const connection = new Connection(String(id), terminal);
  terminal.onResize(({ rows, cols }) => connection.control({ type: "resize", rows, cols }));
  addEventListener("resize", () => fit.fit());
  fit.fit();
  terminal.focus();
  await connection.connect();
}

/** Shows one process through broken connections: each begins where the one before it ended. */
class Connection {
  readonly #id: string;
  readonly #terminal: Terminal;
  #socket: WebSocket | undefined;
  #offset = 0;
  #failures = 0;
  #ended = false;
  /** Typed while there was no connection. */
  #waiting: Uint8Array<ArrayBuffer>[] = [];

  constructor(id: string, terminal: Terminal) {
    this.#id = id;
    this.#terminal = terminal;
    const encoder = new TextEncoder();
    terminal.onData((text) => this.#type(encoder.encode(text)));
    terminal.onBinary((text) => this.#type(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  }

  control(message: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  async connect(): Promise<void> {
    try {
      const { ticket } = await call("POST", "/v1/tickets");
      const url = new URL(`/v1/processes/${this.#id}/connect?ticket=${ticket}&offset=${this.#offset}`, location.href);
      url.protocol = url.protocol.replace("http", "ws");
      this.#follow(new WebSocket(url));
    } catch {
      this.#again();
    }
  }

  #type(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(bytes);
    else if (!this.#ended && this.#waiting.length < MAX_WAITING) this.#waiting.push(bytes);
  }

  #follow(socket: WebSocket): void {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      this.#failures = 0;
      status.textContent = "connected";
      const { rows, cols } = this.#terminal;
      this.control({ type: "resize", rows, cols });
      for (const bytes of this.#waiting.splice(0)) socket.send(bytes);
    });
    socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") return this.#onControl(JSON.parse(data));
      this.#offset += data.byteLength;
      this.#terminal.write(new Uint8Array(data));
    });
    socket.addEventListener("close", () => {
      if (!this.#ended) this.#again();
    });
  }

  #onControl(message: { type: string; to?: number; exit_code?: number; outcome?: string }): void {
    if (message.type === "trimmed") this.#offset = message.to ?? this.#offset;
    if (message.type !== "exit") return;
    this.#ended = true;
    status.textContent = `ended: ${message.outcome}, exit code ${message.exit_code}`;
  }

  #again(): void {
    status.textContent = "reconnecting…";
    setTimeout(() => this.connect(), Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures++));
  }
}
