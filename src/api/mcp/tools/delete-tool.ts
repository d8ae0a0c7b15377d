import { remove } from "../../../filesystem/remove.js";
import type { Sandbox } from "../../../sandbox.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool } from "./tool.js";

interface DeleteInput {
  readonly path: string;
  readonly recursive?: boolean;
}

export function createDeleteTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_fs_delete",
    title: "Delete a file or a directory",
    description:
      "Deletes a file, a link itself, or a directory; one with something in it only with recursive. What is not there is not deleted.",
    requires: "files:write",
    inputSchema: {
      type: "object",
      properties: { path: PATH, recursive: { type: "boolean", default: false } },
      required: ["path"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        deleted: { type: "boolean", description: "False when there was nothing of that name." },
        path: { type: "string", description: "Absolute." },
      },
      required: ["deleted", "path"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    subject: ofPath,
    async run({ path: asked, recursive = false }: DeleteInput, { session, call, abortSignal }) {
      const { access, path, shown } = resolveSessionPath(sandbox, session, call.caller, asked);
      const removed = await remove(access, path, { recursive, missingOk: true }, abortSignal);
      return { structured: { deleted: removed > 0, path: shown } };
    },
  };
}
