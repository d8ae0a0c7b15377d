import { fulfils } from "../../../auth/scopes.js";
import { PicodError } from "../../../errors/picod-error.js";
import { editFile } from "../../../filesystem/edit-file.js";
import type { Sandbox } from "../../../sandbox.js";
import { limitExceeded } from "../limits.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { callerOf } from "./caller.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool, ToolContext } from "./tool.js";

interface EditInput {
  readonly path: string;
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

export function createEditTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_fs_edit",
    title: "Edit a file",
    description:
      "Replaces a passage of a text file, given to the letter, and returns the change as a unified diff. The passage must stand in one place: " +
      "give enough of what is around it, or set replace_all. Line ends are those of the file.",
    requires: "files:write",
    inputSchema: {
      type: "object",
      properties: {
        path: PATH,
        old_string: { type: "string", minLength: 1, description: "What is there, white space included." },
        new_string: { type: "string", description: "What is to be there instead; empty removes it." },
        replace_all: { type: "boolean", default: false, description: "Replace it wherever it stands." },
      },
      required: ["path", "old_string", "new_string"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        path: { type: "string", description: "Absolute." },
        replacements: { type: "integer" },
        size_bytes: { type: "integer" },
        diff: { type: "string", description: "Unified; absent when it would be longer than 64 KiB or 500 changed lines." },
        lines_added: { type: "integer" },
        lines_removed: { type: "integer" },
      },
      required: ["path", "replacements", "size_bytes"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    subject: ofPath,
    run: (input: EditInput, context) => edit(sandbox, input, context),
  };
}

async function edit(sandbox: Sandbox, input: EditInput, { session, call, limits, abortSignal }: ToolContext) {
  const { path: asked, old_string: oldText, new_string: newText, replace_all: everywhere = false } = input;
  const { scopes, name } = callerOf(call);
  // What is around the passage is in the diff.
  if (!fulfils(scopes, "files:read")) {
    throw new PicodError("SCOPE_MISSING", `sandbox_fs_edit needs the scope files:read too, which ${name} does not have`);
  }
  const { maxFileSizeBytes } = limits;
  const assertSize = (bytes: number) => {
    if (bytes <= maxFileSizeBytes) return;
    throw limitExceeded("max_file_size_bytes", maxFileSizeBytes, `cannot edit ${asked}: it would be a file of ${bytes} bytes`);
  };
  const { access, path, shown } = resolveSessionPath(sandbox, session, call.caller, asked);
  const { entry, replacements, diff } = await editFile(access, path, { oldText, newText, everywhere, assertSize }, abortSignal);
  return {
    structured: {
      path: shown,
      replacements,
      size_bytes: Number(entry.size),
      ...(diff && { diff: diff.text, lines_added: diff.linesAdded, lines_removed: diff.linesRemoved }),
    },
  };
}
