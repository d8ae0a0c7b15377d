import { PicodError } from "../errors/picod-error.js";
import type { InputWriter } from "../os/input-writer.js";
import type { TerminalSize } from "../os/terminal.js";
import type { Capability } from "../policy/capability.js";
import { AcceptedWrites } from "./accepted-writes.js";
import { assertMayType } from "./capability-version.js";
import type { ManagedProcess, OutputSink, ProcessEnd, StreamName } from "./managed-process.js";
import type { OutputBudget } from "./output-budget.js";
import { OutputHolds } from "./output-holds.js";
import { OutputLog } from "./output-log.js";

/** Control-D, the VEOF character of a terminal unless its program has changed it. */
const END_OF_FILE = Uint8Array.of(4);

/** What a process was started from, as it was asked for; two requests with the same id must agree in all of it. */
export interface StartedFrom {
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  readonly size: TerminalSize | undefined;
  readonly stdin: boolean;
  readonly login: boolean;
  readonly timeoutMs: number;
  readonly limits: object;
  /** The capability with which it was started, for those who have another one. */
  readonly owner: string | undefined;
  /** What that capability was then. */
  readonly version: string | undefined;
}

/** What a process is called, which does not change what it is. */
export interface ProcessNames {
  readonly tag: string;
  readonly label: string;
  /** Groups processes for those who list them. */
  readonly sessionId: string;
}

/** As what a process runs, whatever the request called it. */
export interface RunsAs {
  /** Absolute. */
  readonly cwd: string;
  readonly userName: string;
}

/** Lets a reader that must not lose anything hold the process back. */
export interface LosslessReader {
  /** First byte that it has not received, by stream. */
  readonly offsets: ReadonlyMap<StreamName, number>;
}

/** A long-lived process as its users see it: identity, state, and output, kept beyond its end. */
export class ProcessRecord implements OutputSink {
  readonly id: string;
  readonly from: StartedFrom;
  readonly runsAs: RunsAs;
  readonly logs: ReadonlyMap<StreamName, OutputLog>;
  /** To be told of what a follower has missed. */
  readonly tellTrimmed: (bytes: number) => void;
  readonly startedAtMs = Date.now();
  tag: string;
  label: string;
  readonly sessionId: string;
  size: TerminalSize | undefined;
  followers = 0;
  inputBytes = 0;
  endedAtMs: number | undefined;
  end: ProcessEnd | undefined;
  process: ManagedProcess | undefined;
  readonly holds = new OutputHolds(this);
  readonly #writes = new AcceptedWrites();
  readonly #budget: OutputBudget;
  readonly #lossless = new Set<LosslessReader>();
  readonly #listeners = new Set<() => void>();

  constructor(
    id: string,
    from: StartedFrom,
    names: ProcessNames,
    runsAs: RunsAs,
    budget: OutputBudget,
    tellTrimmed: (bytes: number) => void,
  ) {
    this.tellTrimmed = tellTrimmed;
    this.id = id;
    this.from = from;
    this.runsAs = runsAs;
    this.tag = names.tag;
    this.label = names.label;
    this.sessionId = names.sessionId;
    this.size = from.size;
    this.#budget = budget;
    const streams: StreamName[] = from.size === undefined ? ["stdout", "stderr"] : ["pty"];
    this.logs = new Map(streams.map((stream) => [stream, new OutputLog(budget.shareBytes)]));
  }

  get state(): "running" | "stopping" | "ended" {
    if (this.end !== undefined) return "ended";
    return this.process?.stopping ? "stopping" : "running";
  }

  get keptBytes(): number {
    return [...this.logs.values()].reduce((sum, log) => sum + log.keptBytes, 0);
  }

  push(stream: StreamName, chunk: Uint8Array): void {
    const log = this.logs.get(stream);
    if (log === undefined) return;
    if (log.end === 0) this.#budget.join(log);
    log.push(chunk);
    this.#holdBack(stream, log);
    this.#wake();
  }

  ended(end: ProcessEnd): void {
    this.end = end;
    this.endedAtMs = Date.now();
    this.holds.close();
    for (const log of this.logs.values()) {
      this.#budget.leave(log);
      log.compact();
    }
    this.#wake();
  }

  /** Calls back when there is output, or the end. Returns the function that stops it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** From now on nothing is trimmed that this reader has not received; the process waits for it. Returns the function that stops it. */
  holdFor(reader: LosslessReader): () => void {
    this.#lossless.add(reader);
    this.release();
    return () => {
      this.#lossless.delete(reader);
      this.release();
    };
  }

  /** To be called when a lossless reader has received something. */
  release(): void {
    for (const [stream, log] of this.logs) this.#holdBack(stream, log);
  }

  /** Whether it is that reader, perhaps with others, that the process waits for. */
  waitsFor(reader: LosslessReader): boolean {
    return [...this.logs].some(([stream, log]) => isTooFarBehind(log, reader.offsets.get(stream) ?? log.end));
  }

  #holdBack(stream: StreamName, log: OutputLog): void {
    const heldFrom = Math.min(...[...this.#lossless].map((reader) => reader.offsets.get(stream) ?? Number.POSITIVE_INFINITY));
    log.holdFrom(heldFrom);
    this.process?.setPaused(stream, isTooFarBehind(log, heldFrom));
  }

  /** `sendInput`, once for each `writeId` among the last: a repeated one writes nothing and returns what the first did. */
  sendInputOnce(
    writeId: string,
    capability: Capability | undefined,
    data: Uint8Array,
    offset: bigint | undefined,
    maxQueuedBytes: number,
  ): number {
    const known = this.#writes.answerOf(writeId);
    if (known !== undefined) return known;
    const inputBytes = this.sendInput(capability, data, offset, maxQueuedBytes);
    this.#writes.remember(writeId, inputBytes);
    return inputBytes;
  }

  /**
   * Appends input. With `offset`, what has arrived before is left out. Returns how much input there is now.
   * @param capability the caller's; undefined: no policy is in force.
   * @throws POLICY_DENIED, PROCESS_ENDED, INPUT_CLOSED, OFFSET_BEYOND_END, INPUT_QUEUE_FULL.
   */
  sendInput(capability: Capability | undefined, data: Uint8Array, offset: bigint | undefined, maxQueuedBytes: number): number {
    const input = this.inputOf(capability);
    const known = offset === undefined ? 0 : this.inputBytes - Number(offset);
    if (known < 0) {
      const message = `cannot send input to ${this.id}: offset ${offset} is beyond the ${this.inputBytes} bytes that have arrived`;
      throw new PicodError("OFFSET_BEYOND_END", message, { id: this.id });
    }
    const added = data.subarray(Math.min(known, data.length));
    // One message is always taken: a limit that it exceeds by itself would refuse it for ever.
    if (input.queuedBytes > 0 && input.queuedBytes + added.length > maxQueuedBytes) {
      const message = `cannot send input to ${this.id}: ${input.queuedBytes} bytes wait for it to read them, the limit is ${maxQueuedBytes}`;
      throw new PicodError("INPUT_QUEUE_FULL", message, { id: this.id });
    }
    if (added.length > 0) input.write(added);
    this.inputBytes += added.length;
    return this.inputBytes;
  }

  /**
   * Ends the input after what was sent; a terminal gets the character that means end of file. Closing twice, or after the end, is
   * no error. @throws INPUT_CLOSED when it was started without input.
   */
  closeInput(): void {
    if (this.process?.input?.closed) return;
    const input = this.#openInput();
    if (this.size === undefined) input.end();
    else input.write(END_OF_FILE);
  }

  /** @throws PROCESS_ENDED, NOT_A_TERMINAL. */
  resize(size: TerminalSize): void {
    if (this.size === undefined)
      throw new PicodError("NOT_A_TERMINAL", `cannot resize ${this.id}: it has no terminal`, { id: this.id });
    if (this.process?.resize(size) !== true)
      throw new PicodError("PROCESS_ENDED", `cannot resize ${this.id}: it has ended`, { id: this.id });
    this.size = size;
  }

  /** @throws PROCESS_ENDED. */
  signal(number: number, leaderOnly: boolean): void {
    if (this.process?.signal(number, leaderOnly) === true) return;
    throw new PicodError("PROCESS_ENDED", `cannot signal ${this.id}: it has ended`, { id: this.id });
  }

  /** For somebody with that capability to write to. @throws POLICY_DENIED, PROCESS_ENDED, INPUT_CLOSED. */
  inputOf(capability: Capability | undefined): InputWriter {
    assertMayType(capability, this);
    return this.#openInput();
  }

  #openInput(): InputWriter {
    const input = this.process?.input;
    if (this.end !== undefined)
      throw new PicodError("PROCESS_ENDED", `cannot send input to ${this.id}: it has ended`, { id: this.id });
    if (input === undefined)
      throw new PicodError("INPUT_CLOSED", `cannot send input to ${this.id}: it was started without standard input`, {
        id: this.id,
      });
    if (input.closed)
      throw new PicodError("INPUT_CLOSED", `cannot send input to ${this.id}: its input is closed`, { id: this.id });
    return input;
  }

  #wake(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A process waits while a lossless reader has not received more than half of what may be kept. */
function isTooFarBehind(log: OutputLog, offset: number): boolean {
  return log.end - offset > log.limitBytes / 2;
}
