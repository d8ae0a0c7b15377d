import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { eventually } from "./eventually.js";

export interface MemoryCgroup extends AsyncDisposable {
  /** Runs a command in it. */
  readonly wrapper: readonly string[];
}

/** A cgroup of version 1 or 2 with a limit of its own, under the one that tests run in. */
export function createMemoryCgroup(limitBytes: number): MemoryCgroup {
  const name = `picod-test-${process.pid}`;
  for (const [base, limit] of [
    ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
    ["/sys/fs/cgroup", "memory.max"],
  ]) {
    const path = `${base}/${name}`;
    try {
      mkdirSync(path);
      writeFileSync(`${path}/${limit}`, String(limitBytes));
    } catch {
      // Of the other version, or not ours to divide.
      continue;
    }
    return {
      wrapper: ["sh", "-c", `echo $$ > ${path}/cgroup.procs; exec "$@"`, "sh"],
      async [Symbol.asyncDispose]() {
        await eventually("the cgroup is empty", () => {
          try {
            rmdirSync(path);
            return true;
          } catch {
            return false;
          }
        });
      },
    };
  }
  throw new Error("this test needs root and a memory cgroup that it may divide");
}
