import { Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import { toConnectError } from "../../errors/to-connect-error.js";
import { errnoName } from "../../os/system-error.js";

/** By reason or errno. */
export type Codes = Readonly<Record<string, Code>>;

/** Of every method. Their clients take resource_exhausted for too many requests, and unavailable for a sandbox that is gone. */
const COMMON: Codes = {
  ENOENT: Code.NotFound,
  INVALID_PATH: Code.InvalidArgument,
  INVALID_ARGUMENT: Code.InvalidArgument,
  USER_NOT_FOUND: Code.Unauthenticated,
  USER_NOT_PERMITTED: Code.PermissionDenied,
  POLICY_DENIED: Code.PermissionDenied,
  POLICY_LIMIT_REACHED: Code.FailedPrecondition,
  WATCH_LIMIT_REACHED: Code.ResourceExhausted,
  SHUTTING_DOWN: Code.Unavailable,
};

/** Runs a method: what fails has the code that the contract names, and is internal where it names none. */
export async function withCodes<T>(codes: Codes, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toEnvdError(error, codes);
  }
}

export function toEnvdError(error: unknown, codes: Codes = {}): unknown {
  if (error instanceof ConnectError) return error;
  const reason = error instanceof PicodError ? error.reason : errnoName(error);
  if (reason === undefined) return error;
  const code = codes[reason] ?? COMMON[reason] ?? Code.Internal;
  return new ConnectError(toConnectError(error, "").rawMessage, code, undefined, undefined, error);
}
