import { Worker } from "node:worker_threads";
import { nativeLibrary, programFolder, readProgramFile } from "../program-file.js";
import type { PathRule } from "./landlock.js";
import { type SpawnOptions, withOpenFileLimit } from "./spawn.js";
import { systemError } from "./system-error.js";

const SCRIPT = "confined-worker.cjs";
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 };
/** Far beyond what any takes: a thread that does not answer is broken. */
const ANSWER_WITHIN_MS = 20_000;

/** What the thread writes for the main one: places in an Int32Array, and behind them the text of an error. */
export const ANSWER = { count: 0, errno: 1, pid: 2, networkFd: 3, listenFd: 4, messageBytes: 5, isReadOnly: 6 } as const;
export const MESSAGE_OFFSET = 64;
const ANSWER_BYTES = 1024;

/** A network of its own, in which that port of loopback may be listened at, or one that another thread has made. */
export type ThreadNetwork =
  | { readonly kind: "new"; readonly listenPort: number | undefined }
  | { readonly kind: "join"; readonly fd: number };

export interface ConfinedThreadOptions {
  /** Undefined: the daemon's. */
  readonly network: ThreadNetwork | undefined;
  /** What is not mounted read-only, where the daemon's rights allow mounts of one's own; undefined: whatever is writable now. */
  readonly writable: readonly string[] | undefined;
}

/** What the thread is told: what it may use, once, and then what to start. */
export type ConfinedThreadMessage = { readonly rules: readonly PathRule[] } | SpawnOptions;

export interface ConfinedThreadData extends ConfinedThreadOptions {
  readonly answer: SharedArrayBuffer;
  readonly isRoot: boolean;
  /** Where the native library is, for the script around the worker's. */
  readonly library: string | undefined;
  readonly folder: string;
}

/**
 * A thread that has confined itself to some files and perhaps to a network, and starts programs: what posix_spawn(3) starts
 * inherits the restrictions of the thread that called it, and is a child of this process like any other. The main thread waits for
 * it as it waits for a spawn of its own.
 */
export class ConfinedThread {
  readonly #worker: Worker;
  readonly #answer = new Int32Array(new SharedArrayBuffer(ANSWER_BYTES));
  #answers = 0;
  #isBroken = false;

  /** Returns at once; the thread prepares itself: network and mounts. Then it is to be confined. */
  constructor(options: ConfinedThreadOptions) {
    const data: ConfinedThreadData = {
      ...options,
      answer: this.#answer.buffer as SharedArrayBuffer,
      isRoot: process.getuid?.() === 0,
      library: nativeLibrary(),
      folder: programFolder(),
    };
    this.#worker = new Worker(`(function (require) { ${readProgramFile(SCRIPT).toString("latin1")}\n})(${REQUIRE})`, {
      eval: true,
      workerData: data,
      resourceLimits: RESOURCE_LIMITS,
      env: {},
      execArgv: [],
    });
    // A thread that has failed does not answer, which its users are told.
    this.#worker.on("error", () => undefined);
    this.#worker.unref();
  }

  /** Resolves when the thread has prepared itself, or has failed to. */
  async prepared(): Promise<void> {
    await Atomics.waitAsync(this.#answer, ANSWER.count, 0, ANSWER_WITHIN_MS).value;
  }

  /**
   * To be called once, before anything is started. Returns when the thread is confined: the descriptors of the rules may be closed.
   * @throws the errno of what the kernel or the daemon's rights do not allow.
   */
  confine(rules: readonly PathRule[]): void {
    try {
      this.#await("confine");
      this.#post({ rules });
      this.#await("confine");
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Of the network that it was to make: the network itself, and the socket that listens there. */
  get network(): { readonly fd: number; readonly listenFd: number | undefined } {
    const [fd = -1, listenFd = -1] = [this.#answer[ANSWER.networkFd], this.#answer[ANSWER.listenFd]];
    return { fd, listenFd: listenFd < 0 ? undefined : listenFd };
  }

  /** It did not answer, and is not used any longer. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Whether all but `writable` is read-only. */
  get isReadOnly(): boolean {
    return this.#answer[ANSWER.isReadOnly] === 1;
  }

  /** As `spawn` of spawn.ts. */
  spawn(options: SpawnOptions): number {
    return withOpenFileLimit(options, () => {
      this.#post(options);
      this.#await("spawn", options.file);
      return this.#answer[ANSWER.pid] ?? -1;
    });
  }

  /** What it has started goes on. */
  close(): void {
    void this.#worker.terminate();
  }

  #post(message: ConfinedThreadMessage): void {
    this.#worker.postMessage(message);
  }

  #await(what: string, path?: string): void {
    if (Atomics.wait(this.#answer, ANSWER.count, this.#answers, ANSWER_WITHIN_MS) === "timed-out") {
      this.#isBroken = true;
      this.close();
      throw new Error(`cannot ${what}: the confined thread does not answer`);
    }
    this.#answers++;
    const errno = this.#answer[ANSWER.errno] ?? 0;
    const messageBytes = this.#answer[ANSWER.messageBytes] ?? 0;
    if (messageBytes === 0) return;
    // A text decoder does not read shared memory.
    const text = Buffer.from(new Uint8Array(this.#answer.buffer, MESSAGE_OFFSET, messageBytes)).toString();
    if (errno === 0) throw new Error(text);
    const error = systemError(what, path, errno);
    throw what === "spawn" ? error : Object.assign(error, { message: text });
  }
}

/** What `require` is in the worker: it is evaluated, and so has no folder of its own to look for the native library in. */
const REQUIRE = `(name) => {
  if (name !== "koffi") return require(name);
  const { library, folder } = require("node:worker_threads").workerData;
  if (library === undefined) return require("node:module").createRequire(folder + "/")("koffi");
  const target = { exports: {} };
  process.dlopen(target, library);
  return target.exports;
}`;
