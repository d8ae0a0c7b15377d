import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { codeName } from "../errors/code-name.js";
import { noteDenial } from "../policy/denial.js";
import { onEnd } from "./on-end.js";

/** Notes on the call how it ended; the server writes the one line when the answer has left. */
export const loggingInterceptor: Interceptor = (next) => (request) => {
  const call = request.contextValues.get(callKey);
  return onEnd(next, request, ({ error, abandoned }) => {
    call.code = error === undefined ? (abandoned ? codeName(Code.Canceled) : "ok") : codeName(ConnectError.from(error).code);
    noteDenial(call, error);
    call.cause = error instanceof ConnectError ? error.cause : error;
  });
};
