import type { CallSubject } from "../../../call.js";

export const PATH = { type: "string", minLength: 1, description: "Absolute, or relative to the session's working directory." };

/** What the audit log says of a tool that is about one path. */
export function ofPath({ path = "." }: { readonly path?: string }): CallSubject {
  return { paths: [path], command: undefined, user: undefined };
}
