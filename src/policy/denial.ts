import type { Call } from "../call.js";
import { PicodError } from "../errors/picod-error.js";

/** Notes on a call what the policy has refused to it, if that is what an error, or one behind it, is about. The first counts. */
export function noteDenial(call: Call, error: unknown): void {
  if (call.denial !== undefined) return;
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!(cause instanceof PicodError) || !POLICY_REASONS.includes(cause.reason)) continue;
    const { capability, permission, limit, subject, path } = cause.metadata;
    call.denial = { capability, permission: permission ?? `limits.${limit}`, subject: subject ?? path ?? "" };
    return;
  }
}

const POLICY_REASONS = ["POLICY_DENIED", "POLICY_LIMIT_REACHED"];
