import type { Caller } from "../../call.js";
import type { Config } from "../../config.js";
import { PicodError } from "../../errors/picod-error.js";

/** What one session may do. */
export interface Limits {
  /** Of a file that is written, and of what is read of one at once. */
  readonly maxFileSizeBytes: number;
  /** Made by the session. */
  readonly maxFiles: number;
  /** Of a command; also what it has when it does not say. */
  readonly timeoutMs: number;
}

export type LimitSettings = Pick<Config, "mcpMaxFileSizeBytes" | "mcpMaxFiles" | "mcpTimeoutMs">;

/** A caller's capability decides where it says something. */
export function limitsOf(config: LimitSettings, caller: Caller | undefined): Limits {
  const { maxFileSizeBytes, maxFiles, timeoutSeconds } = caller?.capability?.limits ?? {};
  return {
    maxFileSizeBytes: maxFileSizeBytes ?? config.mcpMaxFileSizeBytes,
    maxFiles: maxFiles ?? config.mcpMaxFiles,
    timeoutMs: timeoutSeconds === undefined ? config.mcpTimeoutMs : timeoutSeconds * 1000,
  };
}

/** @param name as the documentation has it: `max_file_size_bytes`. */
export function limitExceeded(name: string, value: number, why: string): PicodError {
  return new PicodError("LIMIT_EXCEEDED", `${why}: the limit ${name} is ${value}`, { limit: name, value: String(value) });
}
