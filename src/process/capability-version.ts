import { hash } from "node:crypto";
import type { Capability } from "../policy/capability.js";
import { policyDenied } from "../policy/policy-denied.js";
import { hasWholeNetwork, isUnconfined } from "../policy/unconfined.js";
import { assertMayUse } from "./permit-command.js";
import type { StartedFrom } from "./process-record.js";
import { sameText } from "./same-request.js";

/**
 * A digest of what a process is held to from its start to its end. Hosts are not: what is listed counts for those that run, too.
 */
export function capabilityVersion(capability: Capability | undefined): string | undefined {
  if (capability === undefined) return undefined;
  const { filesystem, shell, limits } = capability;
  const held = { filesystem, shell, wholeNetwork: hasWholeNetwork(capability), maxFileSizeBytes: limits.maxFileSizeBytes };
  return hash("sha256", sameText(held));
}

/**
 * Whoever types at a shell acts with the permissions of that shell. @throws POLICY_DENIED when it was started with another capability, or
 * with what this one was then.
 */
export function assertMayType(
  capability: Capability | undefined,
  process: { readonly id: string; readonly from: Pick<StartedFrom, "owner" | "version"> },
): void {
  const { id, from } = process;
  if (capability === undefined || isUnconfined(capability)) return;
  assertMayUse(capability, { id, owner: from.owner });
  if (from.version === capabilityVersion(capability)) return;
  const why = "that process is held to what the capability was before the policy changed: no input, start it anew";
  throw policyDenied(capability, "shell", id, why);
}
