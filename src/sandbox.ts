import type { Config } from "./config.js";
import { Root } from "./os/root.js";
import { UserDatabase } from "./os/users.js";
import type { ExecuteDefaults } from "./process/execute.js";
import { ExecutionRecords } from "./process/execution-records.js";
import { ProcessRegistry } from "./process/process-registry.js";
import { ProcessTable } from "./process/process-table.js";

const RETAIN_MS = 10 * 60_000;
const MAX_RECORDS = 1000;
const MAX_RECORD_BYTES = 64 * 1024 * 1024;
/** Output of all long-lived processes together, and of one stream. */
const MAX_OUTPUT_BYTES = 128 * 1024 * 1024;
const MAX_STREAM_BYTES = 1024 * 1024;
const MAX_INPUT_BYTES = 1024 * 1024;
const FALLBACK_SOFT_OPEN_FILES = 1024;

/** What the façades work on: the sandbox as this daemon sees it, and what the configuration decides about it. */
export interface Sandbox {
  readonly users: UserDatabase;
  readonly root: Root;
  readonly processes: ProcessTable;
  readonly registry: ProcessRegistry;
  readonly executions: ExecutionRecords;
  /** Input that may wait for one process to read it. */
  readonly maxInputBytes: number;
  readonly defaults: ExecuteDefaults;
}

/** @param env the daemon's own environment; PATH, LANG and PICOD_SOFT_OPEN_FILES (noted by the launcher) are taken from it. */
export function createSandbox(config: Config, env: Readonly<Record<string, string | undefined>>): Sandbox {
  return {
    users: new UserDatabase(),
    root: new Root(config.root),
    processes: new ProcessTable(config.maxProcesses),
    registry: new ProcessRegistry({
      retainMs: RETAIN_MS,
      maxRecords: MAX_RECORDS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      maxStreamBytes: MAX_STREAM_BYTES,
    }),
    maxInputBytes: MAX_INPUT_BYTES,
    executions: new ExecutionRecords({ retainMs: RETAIN_MS, maxRecords: MAX_RECORDS, maxBytes: MAX_RECORD_BYTES }),
    defaults: {
      user: config.user ?? String(process.getuid?.() ?? 0),
      workdir: config.workdir,
      shell: config.shell,
      environment: { path: env.PATH, lang: env.LANG, defaults: config.env },
      timeoutMs: config.defaultTimeoutMs,
      maxOutputBytes: config.maxOutputBytes,
      killGraceMs: config.killGraceMs,
      softOpenFiles: Number(env.PICOD_SOFT_OPEN_FILES) || FALLBACK_SOFT_OPEN_FILES,
    },
  };
}
