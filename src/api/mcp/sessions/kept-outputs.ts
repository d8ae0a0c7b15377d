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

/** What commands of a session have printed, for those who want all of it: the last of it, up to a limit. */
export class KeptOutputs {
  readonly #sessionId: string;
  readonly #maxBytes: number;
  readonly #kept = new Map<string, KeptOutput>();
  #bytes = 0;

  constructor(sessionId: string, maxBytes: number) {
    this.#sessionId = sessionId;
    this.#maxBytes = maxBytes;
  }

  /** The oldest make room. */
  keep(processId: string, stream: "stdout" | "stderr", content: Buffer): KeptOutput {
    const uri = `picod://sessions/${encodeURIComponent(this.#sessionId)}/outputs/${processId}/${stream}`;
    const output = { uri, name: `${stream} of ${processId}`, content };
    this.#kept.set(uri, output);
    this.#bytes += content.length;
    for (const oldest of this.#kept.values()) {
      if (this.#bytes <= this.#maxBytes || oldest === output) break;
      this.#kept.delete(oldest.uri);
      this.#bytes -= oldest.content.length;
    }
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
    this.#kept.clear();
    this.#bytes = 0;
  }
}
