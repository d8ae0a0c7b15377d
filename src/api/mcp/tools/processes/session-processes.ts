import { PicodError } from "../../../../errors/picod-error.js";
import type { ProcessRecord } from "../../../../process/process-record.js";
import type { ProcessRegistry } from "../../../../process/process-registry.js";
import type { SandboxSession } from "../../sessions/sandbox-session.js";

/** Which background processes belong to which session: nobody gets at another session's. */
export class SessionProcesses {
  readonly #registry: ProcessRegistry;
  readonly #bySession = new WeakMap<SandboxSession, Map<string, ProcessRecord>>();

  constructor(registry: ProcessRegistry) {
    this.#registry = registry;
  }

  /** It ends with the session. */
  add(session: SandboxSession, record: ProcessRecord): void {
    const records = this.#bySession.get(session) ?? new Map<string, ProcessRecord>();
    this.#bySession.set(session, records.set(record.id, record));
    if (record.process !== undefined) session.processes.add(record.process);
  }

  /** Oldest first: live ones and those whose end is still kept. */
  list(session: SandboxSession): ProcessRecord[] {
    const records = this.#bySession.get(session) ?? new Map<string, ProcessRecord>();
    for (const id of records.keys()) if (!this.#registry.has(id)) records.delete(id);
    return [...records.values()];
  }

  /** @throws PROCESS_NOT_FOUND. */
  find(session: SandboxSession, id: string): ProcessRecord {
    const found = this.list(session).find((record) => record.id === id);
    if (found !== undefined) return found;
    throw new PicodError("PROCESS_NOT_FOUND", `no such process in this session: ${id}`, { id });
  }
}
