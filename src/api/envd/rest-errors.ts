import { Code, ConnectError } from "@connectrpc/connect";
import { codeName } from "../../errors/code-name.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import type { ShownError } from "../http-route.js";

const CODE_OF_STATUS: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  404: Code.NotFound,
  406: Code.InvalidArgument,
  507: Code.ResourceExhausted,
};
const STATUS_OF_REASON: Readonly<Record<string, number>> = {
  INVALID_PATH: 400,
  INVALID_ARGUMENT: 400,
  NOT_A_REGULAR_FILE: 400,
  POLICY_DENIED: 403,
  ENOENT: 404,
  PRECONDITION_FAILED: 412,
  POLICY_LIMIT_REACHED: 413,
  OFFSET_BEYOND_END: 416,
  ENOSPC: 507,
  EDQUOT: 507,
  NO_SPACE: 507,
  SHUTTING_DOWN: 503,
};

/** What one of the contract's routes answers. */
export class RestError extends ConnectError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message, CODE_OF_STATUS[status] ?? Code.Internal);
    this.status = status;
  }
}

/** Of every route: `{"code":404,"message":"…"}`. */
export const REST_ERRORS = {
  showError(failure: ConnectError): ShownError {
    const [info] = failure.findDetails(ErrorInfoSchema);
    // Every ConnectError calls itself an instance of whatever extends it.
    const { status = STATUS_OF_REASON[info?.reason ?? ""] ?? 500 } = failure as Partial<RestError>;
    return { status, codeText: codeName(failure.code) };
  },
  errorBody: (code: number, message: string) => ({ code, message }),
};
