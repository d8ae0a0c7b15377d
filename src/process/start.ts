import type { UserDatabase } from "../os/users.js";
import type { Command, ResourceLimits } from "./command.js";
import type { ProcessNames, ProcessRecord, StartedFrom } from "./process-record.js";
import type { ProcessRegistry } from "./process-registry.js";
import { newProcessId, type ProcessTable } from "./process-table.js";
import { type CommandDefaults, resolveCommand } from "./resolve-command.js";
import { explainSpawnError, programNotFound } from "./spawn-failure.js";

export interface StartOptions extends StartedFrom, ProcessNames {
  /** Empty: the daemon makes one. */
  readonly id: string;
  readonly limits: ResourceLimits;
  readonly traceparent: string | undefined;
}

const DEFAULT_TERM = "xterm-256color";

/**
 * Starts a process that outlives its caller, or finds the one that was started before with this id from the same request.
 * @throws PROCESS_ID_CONFLICT, TAG_IN_USE, and what Execute throws. A program that cannot be started is a record that has ended.
 */
export function start(
  processes: ProcessTable,
  registry: ProcessRegistry,
  users: UserDatabase,
  defaults: CommandDefaults,
  options: StartOptions,
): ProcessRecord {
  const { id: _id, tag, label, sessionId, traceparent: _traceparent, ...from } = options;
  const known = options.id === "" ? undefined : registry.findSame(options.id, from);
  if (known !== undefined) return known;
  const id = options.id === "" ? newProcessId() : options.id;
  const command = { ...options, command: commandOf(options) };
  const resolved = resolveCommand(users, defaults, command, id, options.size === undefined ? {} : { TERM: DEFAULT_TERM });
  const record = registry.create(id, from, { tag, label, sessionId });
  try {
    if (resolved.file === undefined) {
      registry.add(record);
      registry.ended(record, programNotFound(resolved.argv[0] ?? ""));
      return record;
    }
    const { killGraceMs, softOpenFiles } = defaults;
    const io = options.size === undefined ? pipes(options.stdin) : ({ kind: "terminal", size: options.size } as const);
    const spec = { ...resolved, id, file: resolved.file, io, timeoutMs: options.timeoutMs, killGraceMs, softOpenFiles };
    const started = processes.start(spec, record);
    record.process = started;
    registry.add(record);
    void started.ended.then((end) => registry.ended(record, end));
  } catch (error) {
    const end = explainSpawnError(error, resolved.file ?? "");
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
