import type { PathRules } from "../os/path-rules.js";
import type { Capability } from "./capability.js";
import { GlobRules } from "./glob-rules.js";
import { grantsAt } from "./hierarchy.js";

/** What capabilities grant of files, compiled once for each of the users that have acted with them. */
export class GrantedFiles {
  readonly #compiled = new WeakMap<Capability, Map<string, PathRules>>();

  /** @param home what `~` stands for: see `rootFor`. */
  rulesFor(capability: Capability, home: string): PathRules {
    const byHome = this.#compiled.get(capability) ?? new Map<string, PathRules>();
    this.#compiled.set(capability, byHome);
    const rules = byHome.get(home) ?? compile(capability, home);
    byHome.set(home, rules);
    return rules;
  }
}

function compile({ name, filesystem, limits }: Capability, home: string): PathRules {
  const readPaths = grantsAt(filesystem?.readPaths ?? [], home);
  const writePaths = grantsAt(filesystem?.writePaths ?? [], home);
  return new GlobRules(
    { capability: name, readPaths, writePaths, deniedPaths: [], maxFileSizeBytes: limits.maxFileSizeBytes },
    home,
  );
}
