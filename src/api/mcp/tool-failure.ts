import type { ConnectError } from "@connectrpc/connect";
import { codeName } from "../../errors/code-name.js";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** A tool call that failed, as data: the model reads the message, programs the rest. */
export interface ToolFailure {
  /** `not_found`: as in picod.v1. */
  readonly code: string;
  /** `LIMIT_EXCEEDED`, `ENOENT`: stable. */
  readonly reason: string;
  readonly message: string;
  /** Path, limit and value, where there are such. */
  readonly metadata: Readonly<Record<string, string>>;
}

export function toFailure(error: ConnectError): ToolFailure {
  const [info] = error.findDetails(ErrorInfoSchema);
  const code = codeName(error.code);
  return { code, reason: info?.reason ?? code.toUpperCase(), message: error.rawMessage, metadata: info?.metadata ?? {} };
}
