import { PicodError } from "../errors/picod-error.js";
import type { UserDatabase } from "../os/users.js";
import type { Capability } from "../policy/capability.js";
import type { Trace } from "../trace.js";
import { capabilityVersion } from "./capability-version.js";
import type { Command, ResourceLimits } from "./command.js";
import type { ExecutionRecords } from "./execution-records.js";
import { permitTimeout } from "./permit-command.js";
import type { ProcessNames, ProcessRecord, StartedFrom } from "./process-record.js";
import type { ProcessRegistry } from "./process-registry.js";
import { newProcessId, type ProcessTable } from "./process-table.js";
import { type CommandDefaults, resolveCommand } from "./resolve-command.js";
import { explainSpawnError, programNotFound } from "./spawn-failure.js";
import { Spawning } from "./spawning.js";
import type { Grace } from "./termination.js";

export interface StartOptions extends Omit<StartedFrom, "owner" | "version">, ProcessNames {
  /** The caller's; undefined: no policy is in force. */
  readonly capability: Capability | undefined;
  /** Empty: the daemon makes one. */
  readonly id: string;
  readonly limits: ResourceLimits;
  readonly trace: Trace;
  /** See `ProcessSpec`. */
  readonly timeoutGrace?: Grace;
  readonly untilOutputEnds?: boolean;
}

/** Where processes are known, and what decides about them. */
export interface StartParts {
  readonly processes: ProcessTable;
  readonly registry: ProcessRegistry;
  readonly executions: ExecutionRecords;
  readonly users: UserDatabase;
  readonly defaults: CommandDefaults;
}

const DEFAULT_TERM = "xterm-256color";

/**
 * Starts a process that outlives its caller, or finds the one that was started before with this id from the same request.
 * @throws PROCESS_ID_CONFLICT, TAG_IN_USE, and what Execute throws. A program that cannot be started is a record that has ended.
 */
export function start(parts: StartParts, options: StartOptions): ProcessRecord {
  const { processes, registry, executions, users, defaults } = parts;
  const { id: _id, tag, label, sessionId, trace, timeoutGrace, untilOutputEnds, capability, ...asked } = options;
  const from = { ...asked, owner: capability?.name, version: capabilityVersion(capability) };
  const timeoutMs = permitTimeout(capability, options.timeoutMs, 0);
  const known = options.id === "" ? undefined : registry.findSame(options.id, from);
  if (known !== undefined) return known;
  if (executions.has(options.id)) {
    throw new PicodError("PROCESS_ID_CONFLICT", `id ${options.id} belongs to a command that was executed`, { id: options.id });
  }
  const id = options.id === "" ? newProcessId() : options.id;
  const command = { ...options, command: commandOf(options) };
  const terminal = options.size === undefined || defaults.environment.bare ? {} : { TERM: DEFAULT_TERM };
  using spawning = new Spawning(trace, id, processes);
  const resolved = spawning.resolve((spawn) => resolveCommand(users, defaults, { ...command, trace: spawn }, id, terminal));
  const record = registry.create(
    id,
    from,
    { tag, label, sessionId },
    { cwd: resolved.cwd, userName: resolved.user.name },
    capability,
  );
  try {
    if (resolved.file === undefined) {
      registry.add(record);
      registry.ended(record, spawning.failed(programNotFound(resolved.argv[0] ?? "")));
      return record;
    }
    const { killGraceMs, softOpenFiles } = defaults;
    const io = options.size === undefined ? pipes(options.stdin) : ({ kind: "terminal", size: options.size } as const);
    const ending = {
      timeoutMs,
      killGraceMs,
      ...(timeoutGrace && { timeoutGrace }),
      untilOutputEnds: untilOutputEnds ?? false,
    };
    const spec = { ...resolved, id, file: resolved.file, io, ...ending, softOpenFiles };
    const started = spawning.started(processes.start(spec, record));
    record.process = started;
    registry.add(record);
    void started.ended.then((end) => registry.ended(record, end));
  } catch (error) {
    const end = spawning.failed(explainSpawnError(error, resolved.file ?? ""));
    registry.add(record);
    registry.ended(record, end);
  }
  return record;
}

const pipes = (open: boolean) => ({ kind: "pipes", input: open ? "open" : new Uint8Array() }) as const;

function commandOf({ command, argv, login }: StartOptions): Command {
  if (argv.length > 0) return { argv };
  return { line: command === "" ? undefined : command, login };
}
