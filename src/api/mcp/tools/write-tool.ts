import { FileWriter } from "../../../filesystem/write-file.js";
import type { Sandbox } from "../../../sandbox.js";
import { limitExceeded } from "../limits.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { decodeContent, ENCODING, type Encoding } from "./content.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool, ToolContext } from "./tool.js";

interface WriteInput {
  readonly path: string;
  readonly content: string;
  readonly encoding?: Encoding;
}

export function createWriteTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_fs_write",
    title: "Write a file",
    description: "Writes a file as a whole, or not at all; one that exists is replaced. Missing directories are made.",
    requires: "files:write",
    inputSchema: {
      type: "object",
      properties: { path: PATH, content: { type: "string" }, encoding: ENCODING },
      required: ["path", "content"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: { path: { type: "string", description: "Absolute." }, size_bytes: { type: "integer" } },
      required: ["path", "size_bytes"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    subject: ofPath,
    run: (input: WriteInput, context) => write(sandbox, input, context),
  };
}

async function write(sandbox: Sandbox, { path: asked, content, encoding = "text" }: WriteInput, context: ToolContext) {
  const { session, call, limits, abortSignal } = context;
  const bytes = decodeContent(content, encoding);
  const { maxFileSizeBytes, maxFiles } = limits;
  if (bytes.length > maxFileSizeBytes) {
    throw limitExceeded("max_file_size_bytes", maxFileSizeBytes, `cannot write ${asked}: it is ${bytes.length} bytes long`);
  }
  const { access, path, shown } = resolveSessionPath(sandbox, session, call.caller, asked);
  const writer = new FileWriter(access, path, { size: BigInt(bytes.length) });
  try {
    const takeBack = writer.replaces ? () => undefined : session.countFile(asked, maxFiles);
    try {
      await writer.write(bytes);
      abortSignal.throwIfAborted();
      await writer.commit();
    } catch (error) {
      takeBack();
      throw error;
    }
  } finally {
    writer.close();
  }
  return { structured: { path: shown, size_bytes: bytes.length } };
}
