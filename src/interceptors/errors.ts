import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { toConnectError } from "../errors/to-connect-error.js";
import { observed } from "./observed.js";
import { withMessage } from "./with-message.js";

/** Gives every error that leaves a façade its code, those in the middle of a stream included. */
export const errorInterceptor: Interceptor = (next) => async (request) => {
  const { requestId } = request.contextValues.get(callKey);
  const failed = (error: unknown) => toConnectError(error, requestId);
  try {
    const response = await next(request);
    return response.stream ? withMessage(response, observed(response.message, { failed })) : response;
  } catch (error) {
    throw failed(error);
  }
};
