import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { toConnectError } from "../errors/to-connect-error.js";
import { withMessage } from "./with-message.js";

/** Gives every error that leaves a façade its code, those in the middle of a stream included. */
export const errorInterceptor: Interceptor = (next) => async (request) => {
  const { requestId } = request.contextValues.get(callKey);
  try {
    const response = await next(request);
    return response.stream ? withMessage(response, mapErrors(response.message, requestId)) : response;
  } catch (error) {
    throw toConnectError(error, requestId);
  }
};

async function* mapErrors<T>(messages: AsyncIterable<T>, requestId: string): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw toConnectError(error, requestId);
  }
}
