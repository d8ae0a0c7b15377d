import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { PROTOCOLS } from "../helpers/clients.js";
import { contentOf, sha256 } from "./content.js";
import { KINDS, type Kind, type Message, type Orders } from "./messages.js";

export type FleetOptions = Partial<Orders> & Pick<Orders, "url" | "directory" | "seed" | "clients">;

/** The clients are in so many processes. */
const PROCESSES = 4;

/** Clients in processes of their own, and what they were told. */
export class Fleet {
  readonly stored = new Set<string>();
  /** Clients that have done something: what they need of connections they have. */
  readonly atWork = new Set<string>();
  readonly wrong: string[] = [];
  readonly errors: Record<string, number> = {};
  readonly times: Record<Kind, number[]> = { exec: [], upload: [], download: [], attach: [] };
  bytes = 0;
  kills = 0;
  /** The first of each code. */
  readonly examples: Record<string, string> = {};
  readonly #children = new Map<number, ChildProcess>();
  readonly #ends: Promise<unknown>[] = [];
  readonly #script: string;
  readonly #options: FleetOptions;
  #generation = 0;

  constructor(script: string, options: FleetOptions) {
    this.#script = script;
    this.#options = options;
    for (let at = 0; at < PROCESSES; at++) this.#spawn(at);
  }

  get operations(): number {
    return KINDS.reduce((sum, kind) => sum + this.times[kind].length, 0);
  }

  /** Whatever they are doing; others come in their place. */
  killAndReplace(at: number): void {
    this.kills++;
    this.#children.get(at % PROCESSES)?.kill("SIGKILL");
    this.#spawn(at % PROCESSES);
  }

  /** Lets them finish what they have begun. */
  async end(): Promise<void> {
    for (const child of this.#children.values()) child.stdin?.end();
    await Promise.all(this.#ends);
  }

  /** Compares what is in the directory with what the clients were told, and every file there with what its name says of it. */
  lost(): string[] {
    const found = new Set(readdirSync(this.#options.directory));
    const lost = [...this.stored].filter((name) => !found.has(name)).map((name) => `${name} is not there`);
    for (const name of found) {
      const isOurs = /^\d+-load-/.test(name);
      const isWhole = isOurs && sha256(readFileSync(`${this.#options.directory}/${name}`)) === sha256(contentOf(name));
      if (!isWhole) lost.push(isOurs ? `${name} is not whole` : `${name} was left behind`);
    }
    return lost;
  }

  #spawn(at: number): void {
    const { seed, clients, ...rest } = this.#options;
    const generation = this.#generation++;
    const orders: Orders = {
      protocols: PROTOCOLS,
      kinds: KINDS,
      maxFileBytes: 1024 * 1024,
      ...rest,
      seed: seed + generation,
      clients: Math.floor(clients / PROCESSES) + (at < clients % PROCESSES ? 1 : 0),
      name: `load-${generation}`,
    };
    const child = spawn(process.execPath, [this.#script, JSON.stringify(orders)], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => undefined);
    this.#children.set(at, child);
    const lines = createInterface(child.stdout).on("line", (line) => this.#take(line));
    this.#ends.push(
      Promise.all([once(child, "exit"), once(lines, "close")]).then(([[code, signal]]) => {
        if (code !== 0 && signal !== "SIGKILL") this.wrong.push(`clients ended with ${code ?? signal}`);
      }),
    );
  }

  #take(line: string): void {
    // The last line of one that was killed may be a part of one; a name that was not said completely was not said.
    if (!line.endsWith("}")) return;
    const message: Message = JSON.parse(line);
    if (message.type === "stored") this.stored.add(message.name);
    if (message.type === "removing") this.stored.delete(message.name);
    if (message.type === "wrong") this.wrong.push(message.what);
    if (message.type === "done") {
      this.atWork.add(message.client);
      this.times[message.kind].push(message.ms);
      this.bytes += message.bytes;
    }
    if (message.type !== "failed") return;
    this.errors[message.code] = (this.errors[message.code] ?? 0) + 1;
    this.examples[message.code] ??= `${message.kind}: ${message.message}`;
  }
}
