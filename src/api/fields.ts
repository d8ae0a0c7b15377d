import { PicodError } from "../errors/picod-error.js";

/** @throws INVALID_ARGUMENT. */
export function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalid(name, "expected an object");
}

/** @throws INVALID_ARGUMENT when it is there and of another type. */
export function optional(fields: Record<string, unknown>, name: string, type: "string"): string | undefined;
export function optional(fields: Record<string, unknown>, name: string, type: "number"): number | undefined;
export function optional(fields: Record<string, unknown>, name: string, type: "boolean"): boolean | undefined;
export function optional(fields: Record<string, unknown>, name: string, type: string): unknown {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== type) throw invalid(name, `expected a ${type}`);
  return value;
}

export function invalid(field: string, why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `invalid ${field}: ${why}`, { field });
}

/** @throws INVALID_ARGUMENT. */
export function asStrings(value: unknown, name: string): string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw invalid(name, "expected an array of strings");
}
