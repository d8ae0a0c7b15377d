import { realPathIfAny } from "../os/real-path.js";

/**
 * Where files really are that every command is granted, as it was before any command ran: what leads elsewhere afterwards is nothing that the
 * system has, but what somebody who may make links wants to be granted.
 */
export class SystemFiles {
  readonly #realPaths: ReadonlyMap<string, string | undefined>;

  constructor(paths: readonly string[]) {
    this.#realPaths = new Map(paths.map((path) => [path, realPathIfAny(path)]));
  }

  /** Undefined: it was not there. */
  realPathOf(path: string): string | undefined {
    return this.#realPaths.get(path);
  }

  /** Whether a path that leads to `real` now is what it was, or led there without any link. */
  isAsBefore(path: string, real: string): boolean {
    return real === path || real === this.realPathOf(path);
  }
}
