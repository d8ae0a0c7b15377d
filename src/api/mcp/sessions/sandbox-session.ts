import type { PicodError } from "../../../errors/picod-error.js";
import { Slots } from "../../../filesystem/searching/slots.js";
import type { ProcessScope } from "../../../process/process-scope.js";
import type { BlockedList } from "../blocked-paths.js";
import { limitExceeded } from "../limits.js";
import type { KeptOutputs } from "./kept-outputs.js";

export type SandboxSessionParts = Pick<SandboxSession, "id" | "blocked" | "processes" | "outputs">;

/** Each costs several times the file that it holds, until it has left. */
const LARGE_ANSWERS_AT_ONCE = 2;

/** Where a session works. */
export interface SessionPlace {
  /** As file operations have it: absolute in the root. */
  readonly directory: string;
  /** The same, as commands see it. */
  readonly workdir: string;
}

/** What agents call a sandbox: a working directory, and the processes that end with it. */
export class SandboxSession {
  /** `workflow_42_sandbox`. */
  readonly id: string;
  /** What its files may not be. */
  readonly blocked: BlockedList;
  readonly processes: ProcessScope;
  readonly outputs: KeptOutputs;
  /** For answers that cost memory. */
  readonly largeAnswers = new Slots(LARGE_ANSWERS_AT_ONCE);
  #place: (() => SessionPlace) | undefined;
  readonly #ended = new AbortController();
  #filesCreated = 0;

  constructor({ id, blocked, processes, outputs }: SandboxSessionParts) {
    this.id = id;
    this.blocked = blocked;
    this.processes = processes;
    this.outputs = outputs;
  }

  /** @throws why it has none: its caller may not make a directory there. */
  get place(): SessionPlace {
    if (this.#place === undefined) throw new Error(`the session ${this.id} has no place yet`);
    return this.#place();
  }

  /** @param make throws when it cannot: then those fail who ask for the place, and others do not. */
  settle(make: () => SessionPlace): void {
    try {
      const place = make();
      this.#place = () => place;
    } catch (error) {
      this.#place = () => {
        throw error;
      };
    }
  }

  /** Aborted when it ends. */
  get endedSignal(): AbortSignal {
    return this.#ended.signal;
  }

  get hasEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Calls in progress fail with the reason. */
  end(reason: PicodError): void {
    this.#ended.abort(reason);
    this.outputs.clear();
  }

  /** Counts a file that is about to be made. Returns the function that takes it back. @throws LIMIT_EXCEEDED. */
  countFile(path: string, maxFiles: number): () => void {
    if (this.#filesCreated >= maxFiles) {
      throw limitExceeded("max_files", maxFiles, `cannot write ${path}: the session has made ${this.#filesCreated} files`);
    }
    this.#filesCreated++;
    return () => {
      this.#filesCreated--;
    };
  }
}
