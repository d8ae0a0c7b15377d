import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import { TransferSpan } from "../transfer-span.js";
import { withMessage } from "./with-message.js";

const { readFile, readArchive, writeFile, writeArchive } = FilesystemService.method;
const SENDING: readonly object[] = [readFile, readArchive];
const RECEIVING: readonly object[] = [writeFile, writeArchive];

/** Makes a step of the trace of the content that a call moves. */
export const tracingInterceptor: Interceptor = (next) => async (request) => {
  const call = request.contextValues.get(callKey);
  if (request.stream && RECEIVING.includes(request.method)) {
    return next(withMessage(request, new TransferSpan(call, "received").through(request.message)));
  }
  const response = await next(request);
  if (!response.stream || !SENDING.includes(request.method)) return response;
  return withMessage(response, new TransferSpan(call, "sent").through(response.message));
};
