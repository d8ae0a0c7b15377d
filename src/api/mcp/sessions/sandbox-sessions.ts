import type { Caller } from "../../../call.js";
import type { Config } from "../../../config.js";
import { PicodError } from "../../../errors/picod-error.js";
import type { Sandbox } from "../../../sandbox.js";
import { withinMemory } from "../../../within-memory.js";
import { type BlockedList, type BlockedPathSettings, blockedList } from "../blocked-paths.js";
import { KeptOutputs } from "./kept-outputs.js";
import { OutputBudget } from "./output-budget.js";
import { SandboxSession } from "./sandbox-session.js";
import { callerKey } from "./session-key.js";
import { makeSessionDirectory } from "./session-paths.js";

/** Over all callers. */
const MAX_SESSIONS = 1000;
/** Of what their commands have printed, each, and all together. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const MAX_ALL_OUTPUT_BYTES = 64 * 1024 * 1024;

export type SessionSettings = Pick<Config, "sessionDir" | "sessionIdleTimeoutMs" | "sessionMaxLifetimeMs"> & BlockedPathSettings;

interface OpenSession {
  readonly session: SandboxSession;
  readonly lifetime: NodeJS.Timeout;
  idle: NodeJS.Timeout | undefined;
  callsInProgress: number;
}

/** Every session that is open, by its caller and its id: nobody gets into another caller's. */
export class SandboxSessions {
  readonly #sandbox: Sandbox;
  readonly #settings: SessionSettings;
  readonly #blocked: BlockedList;
  readonly #outputBudget = new OutputBudget(withinMemory(MAX_ALL_OUTPUT_BYTES));
  readonly #open = new Map<string, OpenSession>();

  constructor(sandbox: Sandbox, settings: SessionSettings) {
    this.#sandbox = sandbox;
    this.#settings = settings;
    this.#blocked = blockedList(settings);
  }

  /** Undefined when it is not open. */
  find(caller: Caller, id: string): SandboxSession | undefined {
    return this.#open.get(keyOf(caller, id))?.session;
  }

  /** Runs a call in a session, which is opened when it is not. @throws SESSION_LIMIT_REACHED. */
  async use<T>(caller: Caller, id: string, run: (session: SandboxSession, created: boolean) => Promise<T>): Promise<T> {
    const known = this.#open.get(keyOf(caller, id));
    const entry = known ?? this.#create(caller, id);
    clearTimeout(entry.idle);
    entry.callsInProgress++;
    try {
      // It may have been removed since the last call.
      entry.session.settle(() => makeSessionDirectory(this.#sandbox, this.#settings, caller, id));
      return await run(entry.session, known === undefined);
    } finally {
      entry.callsInProgress--;
      if (entry.callsInProgress === 0 && !entry.session.hasEnded) this.#awaitUse(caller, entry);
    }
  }

  /** Ends its processes; false when it is not open. Its files are left. */
  async close(caller: Caller, id: string, why: string): Promise<boolean> {
    const key = keyOf(caller, id);
    const entry = this.#open.get(key);
    if (entry === undefined) return false;
    this.#open.delete(key);
    clearTimeout(entry.idle);
    clearTimeout(entry.lifetime);
    const { session } = entry;
    session.end(new PicodError("SESSION_ENDED", `the session ${id} has ended: ${why}`, { session_id: id }));
    await this.#sandbox.processes.closeScope(session.processes);
    return true;
  }

  #create(caller: Caller, id: string): OpenSession {
    if (this.#open.size >= MAX_SESSIONS) {
      const message = `cannot open a session: ${MAX_SESSIONS} are open`;
      throw new PicodError("SESSION_LIMIT_REACHED", message, { limit: "sessions", value: String(MAX_SESSIONS) });
    }
    const { processes, defaults } = this.#sandbox;
    const scope = processes.openScope(defaults.killGraceMs);
    const outputs = new KeptOutputs(id, MAX_OUTPUT_BYTES, this.#outputBudget);
    const session = new SandboxSession({ id, blocked: this.#blocked, processes: scope, outputs });
    const { sessionMaxLifetimeMs } = this.#settings;
    const end = () => void this.close(caller, id, "its --session-max-lifetime is over");
    const entry = { session, lifetime: setTimeout(end, sessionMaxLifetimeMs).unref(), idle: undefined, callsInProgress: 0 };
    this.#open.set(keyOf(caller, id), entry);
    return entry;
  }

  #awaitUse(caller: Caller, entry: OpenSession): void {
    const { id } = entry.session;
    const end = () => void this.close(caller, id, "nobody has used it for --session-idle-timeout");
    entry.idle = setTimeout(end, this.#settings.sessionIdleTimeoutMs).unref();
  }
}

function keyOf(caller: Caller, id: string): string {
  return `${callerKey(caller)} ${id}`;
}
