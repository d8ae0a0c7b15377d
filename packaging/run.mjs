import { spawnSync } from "node:child_process";

const MAX_OUTPUT_BYTES = 1024 * 1024 * 1024;

/** Runs a program to its end. Returns what it printed. @throws with its complaints when it fails. */
export function run(program, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
    ...options,
  });
  if (error !== undefined) throw new Error(`cannot run ${program}: ${error.message}`);
  if (status !== 0) throw new Error(`${[program, ...args].join(" ")} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
}
