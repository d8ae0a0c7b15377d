import { Code, type ConnectError } from "@connectrpc/connect";
import { codeName } from "../../errors/code-name.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { ShownError } from "../http-route.js";

type StatusAndCode = readonly [status: number, codeText: string];

/**
 * What the Kubernetes agent-sandbox runtime standard answers. Its clients repeat a request after 500, 502, 503 and 504: these are for what may
 * be better in a moment, and never for what the caller did.
 */
const OF_CODE: Readonly<Partial<Record<Code, StatusAndCode>>> = {
  [Code.InvalidArgument]: [400, "INVALID_ARGUMENT"],
  [Code.FailedPrecondition]: [400, "INVALID_ARGUMENT"],
  [Code.Unauthenticated]: [401, "UNAUTHENTICATED"],
  [Code.PermissionDenied]: [403, "PERMISSION_DENIED"],
  [Code.NotFound]: [404, "NOT_FOUND"],
  [Code.AlreadyExists]: [409, "CONFLICT"],
  [Code.Aborted]: [409, "CONFLICT"],
  [Code.OutOfRange]: [416, "OUT_OF_RANGE"],
  [Code.Canceled]: [499, "CANCELLED"],
  [Code.Unimplemented]: [501, "UNIMPLEMENTED"],
  [Code.ResourceExhausted]: [503, "RESOURCE_EXHAUSTED"],
  [Code.Unavailable]: [503, "UNAVAILABLE"],
  [Code.DeadlineExceeded]: [504, "DEADLINE_EXCEEDED"],
};

/** Where HTTP is more exact than the code. */
const OF_REASON: Readonly<Record<string, StatusAndCode>> = {
  PRECONDITION_FAILED: [412, "FAILED_PRECONDITION"],
  ALREADY_EXISTS: [412, "FAILED_PRECONDITION"],
  CHECKSUM_MISMATCH: [400, "INVALID_ARGUMENT"],
  ROOT_PROTECTED: [409, "CONFLICT"],
  ENOTEMPTY: [409, "CONFLICT"],
  EBUSY: [409, "CONFLICT"],
  ETXTBSY: [409, "CONFLICT"],
  EFBIG: [413, "OUT_OF_RANGE"],
  POLICY_LIMIT_REACHED: [413, "OUT_OF_RANGE"],
  // Of a socket.
  ENXIO: [400, "INVALID_ARGUMENT"],
  ENOSPC: [507, "RESOURCE_EXHAUSTED"],
  EDQUOT: [507, "RESOURCE_EXHAUSTED"],
  NO_SPACE: [507, "RESOURCE_EXHAUSTED"],
};

/** An error of the routes of files. */
export function showFileError(failure: ConnectError): ShownError {
  const [info] = failure.findDetails(ErrorInfoSchema);
  const [status, codeText] = OF_REASON[info?.reason ?? ""] ??
    OF_CODE[failure.code] ?? [500, codeName(Code.Internal).toUpperCase()];
  return { status, codeText };
}
