import { Code, ConnectError } from "@connectrpc/connect";
import type { Call, Caller } from "../../../call.js";

/** Who makes a call. @throws UNAUTHENTICATED when it came past the gate. */
export function callerOf({ caller }: Call): Caller {
  if (caller === undefined) throw new ConnectError("a tool needs an access token", Code.Unauthenticated);
  return caller;
}
