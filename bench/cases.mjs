import { idleMemory, memoryAfterExecs, startUp } from "./cases/daemon.mjs";
import { execs, sleeps, stream } from "./cases/exec.mjs";
import { bulks, smallFiles } from "./cases/files.mjs";
import { loads } from "./cases/loads.mjs";
import { tools } from "./cases/tools.mjs";

/**
 * What is measured. `kind` says how: a start of the daemon, a look at its memory, another's `program`, or a job of the client; `protocols`, how each
 * kind of daemon is spoken to, if it takes part. A `reference` is a job that each turn runs first, to compare with; a `probe`, what another client does
 * beside the job.
 *
 * Goals are a `value`, or ratios to other daemons of this run, of which the first that runs
 * counts. Where the goal is a daemon that never runs here, the ratio to sshd is that of an earlier run with both.
 */
export const CASES = [
  startUp,
  idleMemory,
  ...execs,
  memoryAfterExecs,
  sleeps,
  stream,
  ...bulks,
  ...smallFiles,
  ...loads,
  ...tools,
];
