import { FileReader } from "../../../filesystem/file-reader.js";
import type { Sandbox } from "../../../sandbox.js";
import { limitExceeded } from "../limits.js";
import { resolveSessionPath } from "../sessions/session-paths.js";
import { ENCODING, type Encoding, encodeContent, withoutPartialEnd } from "./content.js";
import { ofPath, PATH } from "./path-input.js";
import type { Tool, ToolContext } from "./tool.js";

const LARGE_BYTES = 1024 * 1024;

interface ReadInput {
  readonly path: string;
  readonly encoding?: Encoding;
  readonly offset?: number;
  readonly limit?: number;
}

export function createReadTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_fs_read",
    title: "Read a file",
    description:
      "Reads a file, or with offset and limit a part of it. What is not UTF-8 is an error unless encoding is base64. Of a part of a text, " +
      "next_offset says where to go on: no character is cut.",
    requires: "files:read",
    inputSchema: {
      type: "object",
      properties: {
        path: PATH,
        encoding: ENCODING,
        offset: { type: "integer", minimum: 0, description: "First byte; default: 0." },
        limit: { type: "integer", minimum: 4, description: "Bytes at most; default: to the end." },
      },
      required: ["path"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        path: { type: "string", description: "Absolute." },
        content: { type: "string" },
        size_bytes: { type: "integer", description: "Of the whole file; of one that does not say, as far as it was read." },
        next_offset: { type: "integer", description: "There when the file goes on behind the content." },
      },
      required: ["path", "content", "size_bytes"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    subject: ofPath,
    run: (input: ReadInput, context) => read(sandbox, input, context),
  };
}

async function read(sandbox: Sandbox, input: ReadInput, context: ToolContext) {
  const { session, call, limits, abortSignal, waitForRoom } = context;
  const { path: asked, encoding = "text", offset = 0, limit } = input;
  const { maxFileSizeBytes } = limits;
  const tooLarge = (bytes: string) =>
    limitExceeded("max_file_size_bytes", maxFileSizeBytes, `cannot read ${bytes} of ${asked} at once, use offset and limit`);
  if (limit !== undefined && limit > maxFileSizeBytes) throw tooLarge(`${limit} bytes`);
  const { access, path, shown } = resolveSessionPath(sandbox, session, call.caller, asked);
  const reader = new FileReader(access, path);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Of what does not say how long it is, one byte more tells whether that is all.
    const wanted = reader.size === undefined ? (limit ?? maxFileSizeBytes) + 1 : (limit ?? maxFileSizeBytes + 1);
    const span = reader.span(BigInt(offset), BigInt(wanted));
    if (limit === undefined && span.end - span.start > maxFileSizeBytes && reader.size !== undefined)
      throw tooLarge(`${reader.size - offset} bytes`);
    if (span.end - span.start > LARGE_BYTES && reader.size !== undefined) await waitForRoom();
    for await (const chunk of reader.read(span)) {
      abortSignal.throwIfAborted();
      bytes += chunk.length;
      if (limit === undefined && bytes > maxFileSizeBytes) throw tooLarge(`more than ${maxFileSizeBytes} bytes`);
      chunks.push(Buffer.from(chunk));
    }
  } finally {
    reader.close();
  }
  const read = Buffer.concat(chunks);
  const size = reader.size ?? offset + read.length;
  const all = read.subarray(0, limit);
  const isPart = offset + all.length < size;
  const content = isPart && encoding === "text" ? withoutPartialEnd(all) : all;
  return {
    structured: {
      path: shown,
      content: encodeContent(asked, content, encoding),
      size_bytes: size,
      ...(isPart && { next_offset: offset + content.length }),
    },
  };
}
