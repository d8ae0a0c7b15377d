import { constants } from "node:os";
import { Worker } from "node:worker_threads";
import { PicodError } from "../../errors/picod-error.js";
import { systemError } from "../../os/system-error.js";
import { readProgramFile } from "../../program-file.js";
import type { LinePatternOptions } from "./line-pattern.js";
import type { LineMatch, LineSearchOptions, SearchTotals } from "./line-searcher.js";

const SCRIPT = "search-worker.cjs";
/** An expression that needs more is refused. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 };

export type SearchThreadOptions = LinePatternOptions & LineSearchOptions;

export interface SearchQuestion {
  /** Descriptors of files to search; undefined to go on with those before. */
  readonly files: readonly number[] | undefined;
}

export interface SearchAnswer {
  /** `file` is the place in the question. */
  readonly matches: { readonly file: number; readonly match: LineMatch }[];
  readonly unreadable: readonly { readonly file: number; readonly errno: number }[];
  readonly totals: SearchTotals;
  /** All files of the question are searched; otherwise there is more. */
  readonly done: boolean;
}

interface Refusal {
  readonly invalid: { readonly message: string; readonly metadata: Readonly<Record<string, string>> };
}

/** A thread that searches files. One question at a time. Use with `await using`. */
export class SearchThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #abortSignal: AbortSignal;
  readonly #onAbort = () => this.#settle?.reject(this.#abortSignal.reason);
  readonly #onExit = () => this.#fail(systemError("search", undefined, constants.errno.EAGAIN));
  #settle: PromiseWithResolvers<SearchAnswer> | undefined;
  #failure: unknown;

  constructor(options: SearchThreadOptions, abortSignal: AbortSignal) {
    abortSignal.throwIfAborted();
    this.#abortSignal = abortSignal;
    const script = readProgramFile(SCRIPT).toString("latin1");
    this.#worker = new Worker(script, {
      eval: true,
      workerData: options,
      resourceLimits: RESOURCE_LIMITS,
      env: {},
      execArgv: [],
    });
    this.#worker.on("message", (answer: SearchAnswer | Refusal) => {
      if ("invalid" in answer) {
        this.#settle?.reject(new PicodError("INVALID_ARGUMENT", answer.invalid.message, answer.invalid.metadata));
      } else {
        this.#settle?.resolve(answer);
      }
    });
    this.#worker.on("error", (error: NodeJS.ErrnoException) => {
      this.#fail(failureOf(error));
    });
    // Should it end without a word, nobody waits for its answer.
    this.#worker.once("exit", this.#onExit);
    abortSignal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Asks about files, or for more about those before. @throws INVALID_ARGUMENT for a malformed pattern; the reason of the abort. */
  async ask(files?: readonly number[]): Promise<SearchAnswer> {
    this.#abortSignal.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
    this.#settle = Promise.withResolvers();
    this.#worker.postMessage({ files } satisfies SearchQuestion);
    return this.#settle.promise;
  }

  #fail(failure: unknown): void {
    this.#failure ??= failure;
    this.#settle?.reject(this.#failure);
  }

  /** Ends the thread whatever it does. Afterwards it uses no descriptor any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abortSignal.removeEventListener("abort", this.#onAbort);
    this.#worker.off("exit", this.#onExit);
    await this.#worker.terminate();
  }
}

/** A thread needs descriptors and memory of its own: says so where there are none. */
function failureOf(error: NodeJS.ErrnoException): unknown {
  if (error.code === "ERR_WORKER_OUT_OF_MEMORY") {
    return new PicodError("INVALID_ARGUMENT", "invalid pattern: it needs too much memory");
  }
  if (error.code !== "ERR_WORKER_INIT_FAILED") return error;
  const errno = /\b(EMFILE|ENFILE|ENOMEM|EAGAIN)\b/.exec(error.message)?.[1] as "EMFILE" | undefined;
  return systemError("search", undefined, constants.errno[errno ?? "EAGAIN"]);
}
