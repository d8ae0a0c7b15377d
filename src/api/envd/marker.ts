import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errnoName } from "../../os/system-error.js";

const MARKER = "/run/e2b/.E2B_SANDBOX";

/** Leaves the file in which programs of E2B's users look for what the variable E2B_SANDBOX says, where that is possible. */
export function leaveMarker(value: string): void {
  try {
    mkdirSync(dirname(MARKER), { recursive: true });
    writeFileSync(MARKER, value, { flag: "wx" });
  } catch (error) {
    // It is there, or this daemon may not write there: programs have the variable.
    if (errnoName(error) === undefined) throw error;
  }
}
