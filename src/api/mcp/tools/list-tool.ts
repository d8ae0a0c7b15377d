import { listDirectory } from "../../../filesystem/list-directory.js";
import type { Sandbox } from "../../../sandbox.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool, ToolContext } from "./tool.js";

/** More than a model can be given. */
const MAX_ENTRIES = 1000;

interface ListInput {
  readonly path?: string;
  readonly recursive?: boolean;
}

export function createListTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_fs_list",
    title: "List a directory",
    description: `Lists a directory, by the bytes of the names, each directory before what is in it. At most ${MAX_ENTRIES} entries.`,
    requires: "files:read",
    inputSchema: {
      type: "object",
      properties: {
        path: { ...PATH, default: "." },
        recursive: { type: "boolean", default: false, description: "Also what is in the directories below." },
      },
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        entries: {
          type: "array",
          items: {
            type: "object",
            properties: {
              name: { type: "string", description: "Below the directory that was listed." },
              type: {
                type: "string",
                enum: ["file", "directory", "symlink", "fifo", "socket", "character-device", "block-device"],
              },
              size_bytes: { type: "integer", description: "Of files." },
              target: { type: "string", description: "Of symlinks." },
            },
            required: ["name", "type"],
          },
        },
        truncated: { type: "boolean", description: "There is more than the entries tell." },
        unreadable: { type: "array", items: { type: "string" }, description: "What could not be looked into, and why." },
      },
      required: ["entries", "truncated"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    subject: ofPath,
    run: (input: ListInput, context) => list(sandbox, input, context),
  };
}

async function list(sandbox: Sandbox, { path: asked = ".", recursive = false }: ListInput, context: ToolContext) {
  const { access, path } = resolveSessionPath(sandbox, context.session, context.call.caller, asked);
  const above = path.endsWith("/") ? path.length : path.length + 1;
  const entries: object[] = [];
  const unreadable: string[] = [];
  for await (const batch of listDirectory(access, path, recursive ? 0 : 1, context.abortSignal)) {
    for (const { path: found, kind, size, symlinkTarget } of batch.entries) {
      if (entries.length === MAX_ENTRIES)
        return { structured: { entries, truncated: true, ...(unreadable.length > 0 && { unreadable }) } };
      entries.push({
        name: found.slice(above),
        type: kind,
        ...(kind === "file" && { size_bytes: Number(size) }),
        ...(symlinkTarget !== undefined && { target: symlinkTarget }),
      });
    }
    for (const { path: found, message } of batch.unreadable) {
      if (unreadable.length < MAX_ENTRIES) unreadable.push(`${found.slice(above)}: ${message}`);
    }
  }
  return { structured: { entries, truncated: false, ...(unreadable.length > 0 && { unreadable }) } };
}
