import { PicodError } from "../errors/picod-error.js";
import { printable } from "../printable.js";
import type { Capability } from "./capability.js";

/** What a capability does not grant. @param permission as the policy file calls it: `shell.allowed_commands`. */
export function policyDenied({ name }: Pick<Capability, "name">, permission: string, subject: string, why: string): PicodError {
  const metadata = { capability: name, permission, subject: printable(subject) };
  return new PicodError("POLICY_DENIED", `denied by capability ${name}: ${printable(subject)}: ${why}`, metadata);
}
