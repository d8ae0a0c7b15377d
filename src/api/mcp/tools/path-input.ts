import type { CallSubject } from "../../../call.js";
import { locateDirectory } from "../../../filesystem/locate-directory.js";
import type { Sandbox } from "../../../sandbox.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import type { ToolContext } from "./tool.js";

export const PATH = { type: "string", minLength: 1, description: "Absolute, or relative to the session's working directory." };

export const WORKDIR = {
  type: "string",
  default: ".",
  description: "Where to run it; relative to, and by default, the session's working directory.",
};

/** The directory, as commands see it, that a tool is to run something in; one that is empty is the session's own. @throws as Stat. */
export function locateWorkdir(sandbox: Sandbox, { session, call }: ToolContext, workdir: string | undefined): string {
  const { access, path } = resolveSessionPath(sandbox, session, call.caller, workdir || ".");
  return locateDirectory(access, path);
}

/** What the audit log says of a tool that is about one path. */
export function ofPath({ path = "." }: { readonly path?: string }): CallSubject {
  return { paths: [path], command: undefined, user: undefined };
}
