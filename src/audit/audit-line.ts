import { createHash } from "node:crypto";
import type { Call, CallSubject } from "../call.js";

/** Of a path that somebody made up; those of our own are shorter. */
const MAX_PROCEDURE_LENGTH = 200;

/** One record, before it is a line. */
export type AuditRecord = Readonly<Record<string, unknown>>;

/**
 * What is recorded of a call that has ended, or has begun. One that the gate has refused has no caller.
 * @param showCommand whether the command itself is, or its digest alone.
 */
export function recordOfCall(event: "call" | "call_begun", call: Call, showCommand: boolean): AuditRecord {
  const { caller, peer, procedure, subject, processId, code = "unknown", requestId, startedAt } = call;
  return {
    event,
    caller: caller?.name,
    how: caller?.how,
    capability: caller?.capability?.name,
    peer,
    procedure: procedure.slice(0, MAX_PROCEDURE_LENGTH),
    ...(subject && describeSubject(subject, showCommand)),
    process_id: processId,
    ...(event === "call" && { code, ...decisionOf(call) }),
    request_id: requestId,
    duration_ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
  };
}

/** What the policy has decided, where there is one. */
function decisionOf({ caller, denial }: Call): AuditRecord {
  if (denial !== undefined) return { decision: "denied", permission: denial.permission, subject: denial.subject };
  return caller?.capability === undefined ? {} : { decision: "allowed" };
}

function describeSubject({ paths, command, user }: CallSubject, showCommand: boolean): AuditRecord {
  return {
    ...(paths.length > 0 && { paths }),
    ...(command !== undefined && { command_sha256: commandDigest(command), ...(showCommand && { command }) }),
    user,
  };
}

/** SHA-256 of a line for the shell, or of the arguments with a NUL behind each, as the kernel keeps them. In hex. */
export function commandDigest(command: string | readonly string[]): string {
  const text = typeof command === "string" ? command : command.map((argument) => `${argument}\0`).join("");
  return createHash("sha256").update(text).digest("hex");
}

/** One JSON object. Chained to the others it becomes a line: see chain.ts. */
export function toJson(record: AuditRecord, time: Date): string {
  return JSON.stringify({ time: time.toISOString(), ...record });
}
