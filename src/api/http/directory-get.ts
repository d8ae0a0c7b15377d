import { setImmediate as nextTurn } from "node:timers/promises";
import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../../filesystem/access.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { followLinks } from "../../filesystem/follow-links.js";
import { listDirectory } from "../../filesystem/list-directory.js";
import { stat } from "../../filesystem/stat.js";
import { errnoName } from "../../os/system-error.js";
import type { NamedFile } from "../../url-path.js";
import { validatorsOf } from "../files/conditional.js";
import { sendListing } from "../files/send-listing.js";
import type { HttpExchange } from "../http-route.js";

/** Each is resolved by the kernel while others wait. */
const LINKS_IN_TURN = 32;

/**
 * GET and HEAD of a directory: its entries as JSON, by the bytes of their names. A symbolic link is shown as what it leads to; those that lead
 * nowhere are left out.
 */
export async function sendDirectory(file: NamedFile, exchange: HttpExchange): Promise<void> {
  const shown = file.asked.startsWith("/") ? file.asked : `/${file.asked}`;
  const head = `{"path":${JSON.stringify(shown)},"entries":[`;
  await sendListing(exchange, [head, "]}\n"], batches(file, exchange.abortSignal));
}

async function* batches({ access, path }: NamedFile, abortSignal: AbortSignal): AsyncGenerator<object[], void, void> {
  for await (const { entries } of listDirectory(access, path, 1, abortSignal)) {
    const batch: object[] = [];
    for await (const entry of followed(access, entries)) batch.push(toListed(entry));
    yield batch;
  }
}

async function* followed(access: Access, entries: readonly EntryInfo[]): AsyncGenerator<EntryInfo, void, void> {
  let links = 0;
  for (const entry of entries) {
    if (entry.kind === "symlink" && ++links % LINKS_IN_TURN === 0) await nextTurn();
    const target = entry.kind === "symlink" ? tryStat(access, entry.path) : entry;
    if (target !== undefined) yield { ...target, name: entry.name };
  }
}

function tryStat(access: Access, path: string): EntryInfo | undefined {
  try {
    return stat(access, followLinks(access, path) ?? path, true);
  } catch (error) {
    if (errnoName(error) === undefined && !(error instanceof PicodError)) throw error;
    return undefined;
  }
}

/** The five fields of the standard, which knows files and directories and nothing else. */
function toListed(entry: EntryInfo): object {
  const { name, size, kind, mode } = entry;
  return {
    name,
    size: Number(size),
    type: kind === "directory" ? "directory" : "file",
    modified_at: validatorsOf(entry).modified.toISOString().replace(".000Z", "Z"),
    mode: (mode & 0o777).toString(8).padStart(4, "0"),
  };
}
