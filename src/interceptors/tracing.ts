import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import { TransferSpan } from "../transfer-span.js";
import { withMessage } from "./with-message.js";

/** Makes a step of the trace of the content that a call moves. */
export function createTracingInterceptor(): Interceptor {
  const { readFile, readArchive, writeFile, writeArchive } = FilesystemService.method;
  const sending: readonly object[] = [readFile, readArchive];
  const receiving: readonly object[] = [writeFile, writeArchive];
  return (next) => async (request) => {
    const call = request.contextValues.get(callKey);
    if (request.stream && receiving.includes(request.method)) {
      return next(withMessage(request, new TransferSpan(call, "received").through(request.message)));
    }
    const response = await next(request);
    if (!response.stream || !sending.includes(request.method)) return response;
    return withMessage(response, new TransferSpan(call, "sent").through(response.message));
  };
}
