import { createHash } from "node:crypto";
import { join } from "node:path";

/** Where what takes long to make is kept between runs, under a name that changes with what it is made of. */
export function cachePath(name: string, madeOf: string): string {
  const { PICOD_E2E_CACHE } = process.env;
  if (PICOD_E2E_CACHE === undefined) throw new Error("PICOD_E2E_CACHE is not set: test/e2e/setup.ts did not run");
  return join(PICOD_E2E_CACHE, `${name}-${createHash("sha256").update(madeOf).digest("hex").slice(0, 12)}`);
}
