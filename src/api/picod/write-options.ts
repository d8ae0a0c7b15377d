import { PicodError } from "../../errors/picod-error.js";
import type { WritePrecondition } from "../../filesystem/writing/write-precondition.js";
import { Durability, type Precondition } from "../../gen/picod/v1/filesystem_pb.js";

const MAX_MODE = 0o7777;

/** @throws INVALID_ARGUMENT. */
export function toMode(mode: number | undefined): number | undefined {
  if (mode === undefined || mode <= MAX_MODE) return mode;
  throw new PicodError("INVALID_ARGUMENT", `invalid mode: 0${mode.toString(8)}: permission bits go from 0 to 07777`);
}

/** Lower-case hexadecimal; undefined for none. @throws INVALID_ARGUMENT. */
export function toSha256(sha256: string): string | undefined {
  if (sha256 === "") return undefined;
  if (/^[0-9a-f]{64}$/i.test(sha256)) return sha256.toLowerCase();
  throw new PicodError("INVALID_ARGUMENT", "invalid sha256: expected 64 hexadecimal digits");
}

/** Whether to sync. @throws INVALID_ARGUMENT. */
export function toSync(durability: Durability): boolean {
  if (durability === Durability.UNSPECIFIED || durability === Durability.SYNC) return durability === Durability.SYNC;
  throw new PicodError("INVALID_ARGUMENT", `invalid durability: ${durability}`);
}

export function toPrecondition(precondition: Precondition | undefined): WritePrecondition | undefined {
  const condition = precondition?.condition;
  if (condition?.case === "etag") return { kind: "etag", etag: condition.value };
  return condition?.case === "mustNotExist" && condition.value ? { kind: "must-not-exist" } : undefined;
}
