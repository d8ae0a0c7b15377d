import type { Caller } from "../../../call.js";
import type { Config } from "../../../config.js";
import { PicodError } from "../../../errors/picod-error.js";
import { unlessAborted } from "../../../process/unless-aborted.js";
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

/** One call, and the session that it means. */
export interface SessionUse<T> {
  readonly caller: Caller;
  readonly id: string;
  readonly abortSignal: AbortSignal;
  /** What is answered where the session is not open; left out, or undefined: it is opened. */
  readonly whenNotOpen?: (() => T | undefined) | undefined;
}

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
  /** Those whose processes, and perhaps files, are not gone yet: one of the same name is opened after that. */
  readonly #closing = new Map<string, Promise<void>>();

  constructor(sandbox: Sandbox, settings: SessionSettings) {
    this.#sandbox = sandbox;
    this.#settings = settings;
    this.#blocked = blockedList(settings);
  }

  /** Undefined when it is not open. */
  find(caller: Caller, id: string): SandboxSession | undefined {
    return this.#open.get(keyOf(caller, id))?.session;
  }

  /** Runs a call in a session, which is opened when it is not. @throws SESSION_LIMIT_REACHED; the reason of the abort while one is closing. */
  async use<T>(
    { caller, id, abortSignal, whenNotOpen }: SessionUse<T>,
    run: (session: SandboxSession, created: boolean) => Promise<T>,
  ): Promise<T> {
    const key = keyOf(caller, id);
    for (let closing = this.#closing.get(key); closing !== undefined; closing = this.#closing.get(key)) {
      await unlessAborted(closing, abortSignal);
    }
    const known = this.#open.get(key);
    const answer = known === undefined ? whenNotOpen?.() : undefined;
    if (answer !== undefined) return answer;
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

  /** Ends its processes; false when it is not open. Its files are left. @param cleanUp what else is done before it may be opened again. */
  async close(caller: Caller, id: string, why: string, cleanUp?: () => Promise<void>): Promise<boolean> {
    const key = keyOf(caller, id);
    const entry = this.#open.get(key);
    if (entry === undefined) return false;
    this.#open.delete(key);
    clearTimeout(entry.idle);
    clearTimeout(entry.lifetime);
    const { session } = entry;
    session.end(new PicodError("SESSION_ENDED", `the session ${id} has ended: ${why}`, { session_id: id }));
    const { promise: closing, resolve } = Promise.withResolvers<void>();
    this.#closing.set(key, closing);
    try {
      await this.#sandbox.processes.closeScope(session.processes);
      await cleanUp?.();
    } finally {
      this.#closing.delete(key);
      resolve();
    }
    return true;
  }

  #create(caller: Caller, id: string): OpenSession {
    if (this.#open.size + this.#closing.size >= MAX_SESSIONS) {
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
