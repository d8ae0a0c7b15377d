import { Code } from "@connectrpc/connect";
import { unauthenticated } from "../auth/authenticator.js";
import type { Requirement } from "../auth/scopes.js";
import type { Call, Caller, Denial } from "../call.js";
import { missingPermission } from "../policy/permissions.js";
import type { Policy } from "../policy/policy.js";
import type { Refusal } from "../refusal.js";

/**
 * Binds a call to what the policy grants its caller at this moment, and refuses it where that is nothing of what it takes. In front of every
 * façade: what comes behind judges paths and commands, and need not ask whether there is a policy.
 * @param requirement undefined: nothing is there.
 */
export function admit(
  policy: Policy | undefined,
  call: Call,
  caller: Caller,
  requirement: Requirement | undefined,
): Refusal | undefined {
  const { name, how, capabilityName } = caller;
  if (policy === undefined) {
    // Whoever has issued it did not mean to open everything.
    if (capabilityName === undefined) return undefined;
    return unauthenticated(
      `what ${name} has shown names the capability ${JSON.stringify(capabilityName)}, and there is no policy`,
    );
  }
  const capability = policy.capabilityOf(caller);
  if (capability === undefined) {
    if (how === "jwt" && capabilityName !== undefined)
      return unauthenticated(`the JWT does not count: there is no capability ${JSON.stringify(capabilityName)}`);
    return denied(call, { capability: undefined, permission: "any", subject: call.procedure }, `${name} has no capability`);
  }
  call.caller = { ...caller, capability, capabilityName: capability.name };
  const missing = requirement && missingPermission(capability, requirement);
  if (missing === undefined) return undefined;
  const why = `the capability ${capability.name} of ${name} does not grant ${missing}`;
  return denied(call, { capability: capability.name, permission: missing, subject: call.procedure }, why);
}

function denied(call: Call, denial: Denial, why: string): Refusal {
  call.denial = denial;
  const { capability, permission, subject } = denial;
  return {
    code: Code.PermissionDenied,
    message: `${call.procedure} is denied by the policy: ${why}`,
    status: 403,
    reason: "POLICY_DENIED",
    metadata: { ...(capability === undefined ? {} : { capability }), permission, subject },
  };
}
