import { signalNumber } from "../../os/spawn.js";
import type { Capability } from "../../policy/capability.js";
import type { ProcessRecord } from "../../process/process-record.js";
import type { StartOptions } from "../../process/start.js";
import type { Trace } from "../../trace.js";
import { asObject, asStrings, invalid, optional } from "../fields.js";
import { toTerminalSize } from "./terminal-size.js";

/** Empty: the daemon makes one. */
const VALID_ID = /^[A-Za-z0-9._:-]{0,128}$/;
const MAX_BYTES = { tag: 128, label: 1024, session_id: 128 } as const;

/** A process as plain HTTP shows it. */
export interface ProcessObject {
  readonly id: string;
  readonly tag: string;
  readonly label: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  readonly pid: number;
  readonly pty: { readonly rows: number; readonly cols: number } | null;
  readonly status: "running" | "exited";
  readonly exit_code: number | null;
  /** `exited`, `signaled`, `timed_out`, `cancelled`, `out_of_memory`, `spawn_failed`. */
  readonly outcome: string | null;
  readonly created_at: string;
  readonly exited_at: string | null;
  readonly session_id: string;
}

export function toProcessObject(record: ProcessRecord): ProcessObject {
  const { id, tag, label, from, runsAs, size, end, startedAtMs, endedAtMs, sessionId } = record;
  const [program = "", ...args] = from.argv;
  return {
    id,
    tag,
    label,
    command: from.command === "" ? program : from.command,
    args,
    cwd: runsAs.cwd,
    pid: record.process?.leaderPid ?? 0,
    pty: size === undefined ? null : { rows: size.rows, cols: size.cols },
    status: end === undefined ? "running" : "exited",
    exit_code: end?.exitCode ?? null,
    outcome: end?.reason.replaceAll("-", "_") ?? null,
    created_at: new Date(startedAtMs).toISOString(),
    exited_at: endedAtMs === undefined ? null : new Date(endedAtMs).toISOString(),
    session_id: sessionId,
  };
}

/** The body of POST /v1/processes. @throws INVALID_ARGUMENT naming the field. */
export function toStartOptions(body: unknown, trace: Trace, capability: Capability | undefined): StartOptions {
  const fields = asObject(body, "body");
  const text = (name: string) => optional(fields, name, "string") ?? "";
  const command = text("command");
  const args = fields.args === undefined ? undefined : asStrings(fields.args, "args");
  const size = fields.pty === undefined || fields.pty === null ? undefined : toTerminalSize(fields.pty, "pty");
  if (command === "" && size === undefined) throw invalid("command", "it is missing");
  const timeoutSeconds = optional(fields, "timeout_seconds", "number") ?? 0;
  if (!(timeoutSeconds >= 0 && timeoutSeconds < Number.POSITIVE_INFINITY))
    throw invalid("timeout_seconds", "it is in seconds, and 0 is no limit");
  assertValidNames(text("id"), { tag: text("tag"), label: text("label"), session_id: text("session_id") });
  return {
    // With arguments the command is a program, without it is a line for the shell.
    command: args === undefined ? command : "",
    argv: args === undefined ? [] : [command, ...args],
    cwd: text("cwd"),
    env: asEnvironment(fields.env),
    user: text("user"),
    size,
    stdin: optional(fields, "stdin", "boolean") ?? true,
    login: optional(fields, "login", "boolean") ?? false,
    timeoutMs: timeoutSeconds * 1000,
    limits: {},
    id: text("id"),
    tag: text("tag"),
    label: text("label"),
    sessionId: text("session_id"),
    trace,
    capability,
  };
}

function assertValidNames(id: string, names: Readonly<Record<keyof typeof MAX_BYTES, string>>): void {
  if (!VALID_ID.test(id)) throw invalid("id", "expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -");
  for (const [name, limit] of Object.entries(MAX_BYTES)) {
    const text = names[name as keyof typeof MAX_BYTES];
    if (Buffer.byteLength(text) > limit) throw invalid(name, `longer than ${limit} bytes`);
    if (/\p{Cc}/u.test(text)) throw invalid(name, "it holds a control character");
  }
}

/** `"TERM"`, `"SIGTERM"` or `15`. @throws INVALID_ARGUMENT. */
export function toSignal(value: unknown): number {
  const number = signalNumber(String(value ?? ""));
  if (number === undefined) throw invalid("signal", `${JSON.stringify(value ?? "")} is unknown`);
  return number;
}

function asEnvironment(value: unknown): Record<string, string> {
  const fields = value === undefined || value === null ? {} : asObject(value, "env");
  asStrings(Object.values(fields), "env");
  const bad = Object.entries(fields).find(([name, text]) => /^$|[=\0]/.test(name) || String(text).includes("\0"));
  if (bad !== undefined) throw invalid("env", `${JSON.stringify(bad[0])} is no name, or has a NUL byte`);
  return fields as Record<string, string>;
}
