import { randomBytes } from "node:crypto";

export function temporaryName(): string {
  return `.picod-${randomBytes(8).toString("hex")}.tmp`;
}

/** Whether a name is of the form that hidden names of ours have: nobody is shown those. */
export function isTemporaryName(name: string): boolean {
  return /^\.picod-[0-9a-f]{16}\.tmp$/.test(name);
}
