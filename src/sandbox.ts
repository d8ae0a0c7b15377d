import { SignedUrls } from "./auth/signed-urls.js";
import type { Config } from "./config.js";
import { ChangeHistories } from "./filesystem/get-changes.js";
import { PendingUploads } from "./filesystem/uploads/pending-uploads.js";
import { KernelWatches } from "./filesystem/watching/kernel-watches.js";
import { readOpenFileLimits } from "./os/open-file-limit.js";
import { Root } from "./os/root.js";
import { UserDatabase } from "./os/users.js";
import type { Confinement } from "./policy/confinement.js";
import { GrantedFiles } from "./policy/granted-files.js";
import type { ExecuteDefaults } from "./process/execute.js";
import { ExecutionRecords } from "./process/execution-records.js";
import { ProcessRegistry } from "./process/process-registry.js";
import { ProcessTable } from "./process/process-table.js";
import { withinMemory } from "./within-memory.js";

const RETAIN_MS = 10 * 60_000;
const MAX_RECORDS = 1000;
const MAX_RECORD_BYTES = 64 * 1024 * 1024;
/** Output of all long-lived processes together, and of one stream below. */
const MAX_OUTPUT_BYTES = 128 * 1024 * 1024;
const MAX_STREAM_BYTES = 1024 * 1024;
const MAX_INPUT_BYTES = 1024 * 1024;
const UPLOAD_EXPIRE_MS = 60 * 60_000;
const MAX_UPLOADS = 1000;
/** Each pending upload holds a descriptor; most of them are for the calls. */
const UPLOADS_SHARE_OF_OPEN_FILES = 1 / 4;
const FALLBACK_SOFT_OPEN_FILES = 1024;

/** What the façades work on: the sandbox as this daemon sees it, and what the configuration decides about it. */
export interface Sandbox {
  readonly users: UserDatabase;
  readonly root: Root;
  readonly grantedFiles: GrantedFiles;
  readonly processes: ProcessTable;
  readonly registry: ProcessRegistry;
  readonly executions: ExecutionRecords;
  readonly uploads: PendingUploads;
  readonly watches: KernelWatches;
  readonly histories: ChangeHistories;
  /** Input that may wait for one process to read it. */
  readonly maxInputBytes: number;
  readonly defaults: ExecuteDefaults;
  /** Starts the commands of those who have a capability. */
  readonly confinement: Confinement;
  /** What the daemon was started with, for the façades whose clients expect commands to inherit it; nothing of PicoD's own. */
  readonly inheritedEnvironment: Readonly<Record<string, string>>;
  /** Addresses of plain HTTP that work without the token. */
  readonly signedUrls: SignedUrls;
}

/** @param env the daemon's own environment; PATH, LANG and PICOD_SOFT_OPEN_FILES (noted by the launcher) are taken from it. */
export function createSandbox(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  confinement: Confinement,
): Sandbox {
  const watches = new KernelWatches();
  return {
    users: new UserDatabase(),
    root: new Root(config.root),
    grantedFiles: new GrantedFiles(),
    processes: new ProcessTable(config.maxProcesses),
    registry: new ProcessRegistry({
      retainMs: RETAIN_MS,
      maxRecords: MAX_RECORDS,
      maxOutputBytes: withinMemory(MAX_OUTPUT_BYTES),
      maxStreamBytes: MAX_STREAM_BYTES,
    }),
    uploads: new PendingUploads({
      expireMs: UPLOAD_EXPIRE_MS,
      maxUploads: Math.min(MAX_UPLOADS, Math.floor(Number(readOpenFileLimits().soft) * UPLOADS_SHARE_OF_OPEN_FILES)),
    }),
    maxInputBytes: MAX_INPUT_BYTES,
    inheritedEnvironment: inheritable(env),
    executions: new ExecutionRecords({ retainMs: RETAIN_MS, maxRecords: MAX_RECORDS, maxBytes: withinMemory(MAX_RECORD_BYTES) }),
    signedUrls: new SignedUrls(),
    watches,
    confinement,
    histories: new ChangeHistories(watches),
    defaults: {
      user: config.user ?? String(process.getuid?.() ?? 0),
      workdir: config.workdir,
      shell: config.shell,
      environment: { path: env.PATH, lang: env.LANG, defaults: config.env },
      timeoutMs: config.defaultTimeoutMs,
      maxOutputBytes: config.maxOutputBytes,
      killGraceMs: config.killGraceMs,
      confinement,
      softOpenFiles: Number(env.PICOD_SOFT_OPEN_FILES) || FALLBACK_SOFT_OPEN_FILES,
    },
  };
}

/** Node's thread pool size is set by the daemon itself, and its traces are not those of commands, which might even read its secrets. */
const OWN_VARIABLE = /^(PICOD_|OTEL_|UV_THREADPOOL_SIZE$)/;

function inheritable(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(([name, value]) => value !== undefined && !OWN_VARIABLE.test(name));
  return Object.fromEntries(kept) as Record<string, string>;
}
