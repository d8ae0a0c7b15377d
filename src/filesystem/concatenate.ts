import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { FileReader } from "./file-reader.js";
import { remove } from "./remove.js";
import { setAttributes } from "./set-attributes.js";
import { FileWriter } from "./write-file.js";

/**
 * Makes one file of several, in their order, and removes those. The new content takes the name at once; until then, and after an error,
 * everything is as it was. @throws NOT_A_REGULAR_FILE, NO_SPACE, errno with the path; the signal's reason.
 */
export async function concatenate(
  access: Access,
  sources: readonly string[],
  destination: string,
  abortSignal: AbortSignal,
): Promise<EntryInfo> {
  const writer = new FileWriter(access, destination, {});
  try {
    for (const source of sources) await append(access, source, writer, abortSignal);
    const { entry } = await writer.commit();
    const { owner } = access;
    if (owner !== undefined) setAttributes(access, destination, { owner: String(owner.uid), group: String(owner.gid) });
    for (const source of new Set(sources)) await remove(access, source, { missingOk: true }, abortSignal);
    return entry;
  } finally {
    writer.close();
  }
}

async function append(access: Access, source: string, writer: FileWriter, abortSignal: AbortSignal): Promise<void> {
  const reader = new FileReader(access, source);
  try {
    for await (const chunk of reader.read(reader.span())) {
      abortSignal.throwIfAborted();
      await writer.write(chunk);
    }
  } finally {
    reader.close();
  }
}
