import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The built daemon, as it is shipped. `npm test` builds it first. */
export const PICOD = process.env.PICOD_BIN ?? join(import.meta.dirname, "../../dist/picod");
export const TOKEN = "test-token-4f1d2c";
const START_TIMEOUT_MS = 10_000;

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface DaemonOptions {
  readonly args?: readonly string[];
  /** Replaces the environment; PATH is kept. Default: the token in PICOD_ACCESS_TOKEN. */
  readonly env?: Readonly<Record<string, string>>;
  /** Put before the command: `["setpriv", "--reuid", "1000", …]`. */
  readonly wrapper?: readonly string[];
}

/** A daemon of its own process on a free port of the loopback interface. */
export class Daemon implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly logs: LogLine[] = [];
  stderr = "";
  port = 0;
  readonly #exited: Promise<number>;
  #onLine: (() => void)[] = [];

  constructor(options: DaemonOptions) {
    const { PATH = "" } = process.env;
    const [file = "", ...args] = [
      ...(options.wrapper ?? []),
      PICOD,
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      ...(options.args ?? []),
    ];
    this.child = spawn(file, args, {
      env: { PATH, ...(options.env ?? { PICOD_ACCESS_TOKEN: TOKEN }) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#exited = once(this.child, "exit").then(([code, signal]) => code ?? `signal ${signal}`);
    if (this.child.stdout === null || this.child.stderr === null) throw new Error("no pipes");
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    createInterface(this.child.stdout).on("line", (line) => {
      this.logs.push(parseLine(line));
      for (const listener of this.#onLine.splice(0)) listener();
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Exit code, or "signal NAME". */
  get exited(): Promise<number | string> {
    return this.#exited;
  }

  /** Resolves with the first line, past or future, for which `matches`. Rejects when the daemon ends without one. */
  async waitForLog(matches: (line: LogLine) => boolean): Promise<LogLine> {
    for (;;) {
      const found = this.logs.find(matches);
      if (found !== undefined) return found;
      const ended = this.#exited.then((code) => {
        throw new Error(`picod ended with ${code}\n${this.stderr}`);
      });
      await Promise.race([new Promise<void>((resolve) => this.#onLine.push(resolve)), ended]);
    }
  }

  /** Open descriptors of the daemon. */
  descriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  /** Live children and zombies of the daemon. */
  children(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => parentOf(pid) === this.pid);
  }

  /** Resident memory in bytes. */
  rss(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1]) * 1024;
  }

  /** Sends TERM and resolves with the exit code. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> {
    this.child.kill(signal);
    return this.#exited;
  }

  /** Fails the test when the daemon does not stop cleanly, or has complained on the way. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const code = await this.stop();
    if (code !== 0) throw new Error(`picod ended with ${code}\n${this.stderr}\n${JSON.stringify(this.logs.at(-1))}`);
    if (this.stderr !== "") throw new Error(`picod wrote to stderr: ${this.stderr}`);
  }
}

/** Starts the built daemon and waits until it listens. Use with `await using`. */
export async function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
  const daemon = new Daemon({ ...options, args: ["--log-format", "json", ...(options.args ?? [])] });
  const timer = setTimeout(() => daemon.child.kill("SIGKILL"), START_TIMEOUT_MS);
  const line = await daemon.waitForLog(({ msg }) => msg === "server listening");
  clearTimeout(timer);
  daemon.port = Number(line.port);
  return daemon;
}

function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line);
  } catch {
    return { level: "unparsable", msg: line };
  }
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // It ended while the list was read.
    return 0;
  }
}
