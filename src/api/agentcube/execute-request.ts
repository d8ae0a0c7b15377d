import { PicodError } from "../../errors/picod-error.js";
import { asObject, asStrings, optional } from "../fields.js";
import { parseGoDuration } from "./go-duration.js";

export const DEFAULT_TIMEOUT_MS = 60_000;

export interface ExecuteRequest {
  readonly argv: readonly string[];
  /** Undefined: the default. */
  readonly timeoutMs: number | undefined;
  /** Empty: the workspace. */
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The body of POST /api/execute. @throws INVALID_ARGUMENT in the words of the contract. */
export function toExecuteRequest(body: unknown): ExecuteRequest {
  const fields = asObject(body, "body");
  const argv = asStrings(fields.command ?? [], "command");
  if (argv.length === 0) throw new PicodError("INVALID_ARGUMENT", "command cannot be empty");
  const env = asObject(fields.env ?? {}, "env");
  asStrings(Object.values(env), "env");
  return {
    argv,
    timeoutMs: toTimeout(optional(fields, "timeout", "string") ?? ""),
    workingDirectory: optional(fields, "working_dir", "string") ?? "",
    env: env as Record<string, string>,
  };
}

function toTimeout(text: string): number | undefined {
  if (text === "") return undefined;
  let milliseconds: number;
  try {
    milliseconds = parseGoDuration(text);
  } catch (error) {
    throw new PicodError("INVALID_ARGUMENT", `Invalid timeout format: ${(error as Error).message}`);
  }
  if (milliseconds > 0) return milliseconds;
  throw new PicodError("INVALID_ARGUMENT", `Invalid timeout format: ${JSON.stringify(text)} is no time at all`);
}
