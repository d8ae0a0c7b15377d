import type { OutputBudget } from "./output-budget.js";

/** One stream of a command that was too long for its answer. */
export interface KeptOutput {
  readonly uri: string;
  readonly name: string;
  readonly content: Buffer;
}

/** Whose output a URI names; empty when it names none. */
export function sessionIdOfOutput(uri: string): string {
  const [, id = ""] = /^picod:\/\/sessions\/([^/]+)\/outputs\//.exec(uri) ?? [];
  try {
    return decodeURIComponent(id);
  } catch {
    return "";
  }
}

/** What commands of a session have printed, for those who want all of it: the last of it, up to a limit of its own and that of all. */
export class KeptOutputs {
  readonly #sessionId: string;
  readonly #maxBytes: number;
  readonly #budget: OutputBudget;
  readonly #kept = new Map<string, KeptOutput>();
  #bytes = 0;

  constructor(sessionId: string, maxBytes: number, budget: OutputBudget) {
    this.#sessionId = sessionId;
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  /** The oldest make room. */
  keep(processId: string, stream: "stdout" | "stderr", content: Buffer): KeptOutput {
    const uri = `picod://sessions/${encodeURIComponent(this.#sessionId)}/outputs/${processId}/${stream}`;
    const output = { uri, name: `${stream} of ${processId}`, content };
    this.#kept.set(uri, output);
    this.#bytes += content.length;
    for (const oldest of this.#kept.values()) {
      if (this.#bytes <= this.#maxBytes || oldest === output) break;
      this.#drop(oldest);
    }
    this.#budget.add(output, () => this.#drop(output));
    return output;
  }

  find(uri: string): KeptOutput | undefined {
    return this.#kept.get(uri);
  }

  /** Oldest first. */
  list(): KeptOutput[] {
    return [...this.#kept.values()];
  }

  clear(): void {
    for (const output of this.#kept.values()) this.#drop(output);
  }

  #drop(output: KeptOutput): void {
    this.#kept.delete(output.uri);
    this.#bytes -= output.content.length;
    this.#budget.removed(output);
  }
}
