import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { describeRequirement, fulfils, type Requirement } from "../auth/scopes.js";
import { callKey } from "../call.js";

/** Asserts that the gate has judged the call, and rightly. A service that is mounted past the gate, or asks for nothing, fails closed here. */
export function createAuthInterceptor(requirements: ReadonlyMap<string, Requirement>): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    const procedure = `/${request.service.typeName}/${request.method.name}`;
    const requirement = requirements.get(procedure);
    if (caller === undefined || requirement === undefined)
      throw new ConnectError(`${procedure} needs an access token`, Code.Unauthenticated);
    if (!fulfils(caller.scopes, requirement)) {
      throw new ConnectError(`${procedure} needs the scope ${describeRequirement(requirement)}`, Code.PermissionDenied);
    }
    return next(request);
  };
}
