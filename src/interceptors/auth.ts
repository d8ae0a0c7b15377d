import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { isPublicProcedure } from "../auth/public-paths.js";
import { callKey } from "../call.js";

/** Asserts that the gate has judged the call. A service that is mounted past the gate fails closed here. */
export const authInterceptor: Interceptor = (next) => (request) => {
  const { caller } = request.contextValues.get(callKey);
  const procedure = `/${request.service.typeName}/${request.method.name}`;
  if (caller === undefined || (caller.how === "public" && !isPublicProcedure(procedure))) {
    throw new ConnectError(`${procedure} needs an access token`, Code.Unauthenticated);
  }
  return next(request);
};
