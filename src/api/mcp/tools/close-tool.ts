import { fulfils } from "../../../auth/scopes.js";
import { PicodError } from "../../../errors/picod-error.js";
import { remove } from "../../../filesystem/remove.js";
import type { Sandbox } from "../../../sandbox.js";
import type { SandboxSessions } from "../sessions/sandbox-sessions.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { callerOf } from "./caller.js";
import type { Tool } from "./tool.js";

/** Closes what the other tools work in. */
export function createCloseTool(sandbox: Sandbox, sessions: SandboxSessions): Tool {
  return {
    name: "sandbox_close",
    title: "Close the sandbox",
    description:
      "Ends every process of the sandbox session, those in the background included. Files are kept, and are there again when the same session " +
      "is opened later, unless remove_files is set.",
    requires: "any",
    inputSchema: {
      type: "object",
      properties: { remove_files: { type: "boolean", description: "Also remove the working directory.", default: false } },
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: { closed: { type: "boolean", description: "False when it was not open." }, session_id: { type: "string" } },
      required: ["closed", "session_id"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    // To remove what an earlier one has left, it is opened once more.
    whenNotOpen: ({ remove_files: removeFiles = false }: { remove_files?: boolean }, sessionId) =>
      removeFiles ? undefined : { structured: { closed: false, session_id: sessionId } },
    async run(
      { remove_files: removeFiles = false }: { remove_files?: boolean },
      { session, sessionCreated, call, callerSignal },
    ) {
      const caller = callerOf(call);
      if (removeFiles && !fulfils(caller.scopes, "files:write")) {
        throw new PicodError("SCOPE_MISSING", `remove_files needs the scope files:write, which ${caller.name} does not have`);
      }
      const removeAll = async () => {
        const { access, path } = resolveSessionPath(sandbox, session, caller, session.place.workdir);
        await remove(access, path, { recursive: true, missingOk: true }, callerSignal);
      };
      const closed = await sessions.close(caller, session.id, "it was closed", removeFiles ? removeAll : undefined);
      return { structured: { closed: closed && !sessionCreated, session_id: session.id } };
    },
  };
}
