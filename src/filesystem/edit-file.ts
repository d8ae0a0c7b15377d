import { isUtf8 } from "node:buffer";
import { PicodError } from "../errors/picod-error.js";
import type { Access } from "./access.js";
import { type Replacement, replaceExactly } from "./editing/replace-exactly.js";
import { type UnifiedDiff, unifiedDiff } from "./editing/unified-diff.js";
import type { EntryInfo } from "./entry-info.js";
import { FileReader } from "./file-reader.js";
import { FileWriter } from "./write-file.js";

export interface EditFileOptions extends Replacement {
  /** Throws when a file of so many bytes is too long to be edited, before and after. */
  assertSize(bytes: number): void;
}

export interface EditFileResult {
  readonly entry: EntryInfo;
  readonly replacements: number;
  /** Undefined when it would be too long. */
  readonly diff: UnifiedDiff | undefined;
}

/**
 * Replaces a passage of a UTF-8 file, which takes the place of the old one as a whole or not at all; everything else of it stays as it was, a
 * byte order mark and line ends included.
 * @throws TEXT_NOT_FOUND, TEXT_NOT_UNIQUE, NOT_TEXT, NOT_A_REGULAR_FILE; PRECONDITION_FAILED when somebody else has changed the file
 * meanwhile; errno of open(2); the signal's reason; what `assertSize` throws.
 */
export async function editFile(
  access: Access,
  path: string,
  options: EditFileOptions,
  abortSignal: AbortSignal,
): Promise<EditFileResult> {
  const { etag, bytes } = await readWhole(access, path, options, abortSignal);
  // A NUL byte is what tells binary files that happen to be UTF-8, as it does for git and grep.
  if (!isUtf8(bytes) || bytes.includes(0)) {
    throw new PicodError("NOT_TEXT", `cannot edit ${path}: it is not UTF-8 text`, { path });
  }
  // Decoded so, a byte order mark stays.
  const before = bytes.toString("utf8");
  const { text, replacements } = replaceExactly(path, before, options);
  const content = Buffer.from(text);
  options.assertSize(content.length);
  const writer = new FileWriter(access, path, { size: BigInt(content.length), precondition: { kind: "etag", etag } });
  try {
    await writer.write(content);
    abortSignal.throwIfAborted();
    const { entry } = await writer.commit();
    return { entry, replacements, diff: unifiedDiff(path, before, text) };
  } finally {
    writer.close();
  }
}

async function readWhole(access: Access, path: string, { assertSize }: EditFileOptions, abortSignal: AbortSignal) {
  const reader = new FileReader(access, path);
  try {
    if (reader.size !== undefined) assertSize(reader.size);
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of reader.read(reader.span())) {
      abortSignal.throwIfAborted();
      length += chunk.length;
      assertSize(length);
      chunks.push(Buffer.from(chunk));
    }
    return { etag: reader.entry.etag, bytes: Buffer.concat(chunks, length) };
  } finally {
    reader.close();
  }
}
