import type { BigIntStats } from "node:fs";
import { PicodError } from "../../errors/picod-error.js";
import { etagOf } from "../entry-info.js";

/** What must hold of the name that is written. */
export type WritePrecondition = { readonly kind: "must-not-exist" } | { readonly kind: "etag"; readonly etag: string };

/** @throws ALREADY_EXISTS, PRECONDITION_FAILED. */
export function assertPrecondition(
  path: string,
  existing: BigIntStats | undefined,
  precondition: WritePrecondition | undefined,
): void {
  if (precondition === undefined) return;
  if (precondition.kind === "must-not-exist") {
    if (existing !== undefined) throw new PicodError("ALREADY_EXISTS", `cannot write ${path}: it exists`, { path });
    return;
  }
  const etag = existing === undefined ? "" : etagOf(existing);
  if (etag === precondition.etag) return;
  const why = existing === undefined ? "it does not exist" : `its etag is ${etag}`;
  throw new PicodError("PRECONDITION_FAILED", `cannot write ${path}: ${why}`, { path, etag });
}
