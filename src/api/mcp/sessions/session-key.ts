import { createHash, randomUUID } from "node:crypto";
import { type Caller, isDaemonToken } from "../../../call.js";
import { PicodError } from "../../../errors/picod-error.js";
import { printable } from "../../../printable.js";

/** What of a request's `_meta` names a session, the first that is there. */
const SCOPES: readonly (readonly [type: string, names: readonly string[]])[] = [
  ["workflow", ["workflow_id", "workflowId"]],
  ["agent", ["agent_id", "agentId"]],
];
/** It becomes a file name. */
const VALID_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

export type RequestMeta = Readonly<Record<string, unknown>>;

/** `workflow_42_sandbox`: the session that a request means; undefined when it names none. @throws INVALID_ARGUMENT. */
export function sessionIdOf(meta: RequestMeta): string | undefined {
  for (const [type, names] of SCOPES) {
    const name = names.find((each) => meta[each] !== undefined);
    if (name === undefined) continue;
    const id = meta[name];
    if (typeof id === "string" && VALID_ID.test(id)) return `${type}_${id}_sandbox`;
    const shown = typeof id === "string" ? printable(id) : typeof id;
    const message = `invalid _meta.${name}: ${shown}: expected up to 128 letters, digits and any of . _ : @ - behind the first`;
    throw new PicodError("INVALID_ARGUMENT", message, { field: name });
  }
  return undefined;
}

/** For a client that names none: the session of its connection. */
export function newSessionId(): string {
  return `session_${randomUUID().slice(0, 8)}_sandbox`;
}

/** The same for calls of the same caller, whatever its token is now; with another capability it is another one. */
export function callerKey({ how, name, capability }: Caller): string {
  return JSON.stringify([how, name, ...(capability === undefined ? [] : [capability.name])]);
}

/** Callers do not meet in each other's directories, whatever they call their sessions. */
export function directoryNameOf(caller: Caller, sessionId: string): string {
  if (isDaemonToken(caller)) return sessionId;
  return `${sessionId}.${createHash("sha256").update(callerKey(caller)).digest("hex").slice(0, 12)}`;
}
