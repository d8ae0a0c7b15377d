import { randomBytes } from "node:crypto";
import { Code } from "@connectrpc/connect";
import type { Refusal } from "../refusal.js";
import type { HttpRequest } from "./http-types.js";

/** Names the run of the daemon that answers; in a request, the one that is meant. */
export const INSTANCE_HEADER = "x-picod-instance";

/** Another one for each run. It tells runs apart and is no secret. */
export function newInstanceId(): string {
  return randomBytes(12).toString("base64url");
}

/**
 * What makes repeating safe is in the memory of one run. A request that may be the repetition of one to a run before says which run
 * it means, and no other begins with it.
 */
export function refuseOtherInstance(request: HttpRequest, instanceId: string): Refusal | undefined {
  const expected = request.headers[INSTANCE_HEADER]?.toString();
  if (expected === undefined || expected === instanceId) return undefined;
  const message = "the daemon was restarted: it is not the one that the request is for, and nothing of it was begun";
  return { code: Code.Aborted, message, status: 409, reason: "INSTANCE_CHANGED" };
}
