import type { BigIntStats } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import type { PathFilter } from "../../filesystem/patterns/path-filter.js";
import { decodePath, isRawName, pathBytes } from "../../os/path-bytes.js";

export interface LocalEntry {
  /** Decoded, see decodePath. */
  readonly relativePath: string;
  /** For calls of node:fs. */
  readonly path: string | Buffer;
  readonly stats: BigIntStats;
}

/** A path for calls of node:fs, which know no escaped bytes. */
export function localPath(root: string, relativePath: string): string | Buffer {
  const path = relativePath === "" ? root : `${root}/${relativePath}`;
  return isRawName(relativePath) ? Buffer.concat([Buffer.from(root), Buffer.from("/"), pathBytes(relativePath)]) : path;
}

/**
 * What is below a local directory and wanted, in the order of ListDirectory. Links are not followed. `onIgnoreFile` hears of the ignore
 * files among `ignoreFiles` that are found; entries that vanish meanwhile are left out. @throws what node:fs does.
 */
export async function* walkLocal(
  root: string,
  filter: PathFilter,
  ignoreFiles: readonly string[],
  onIgnoreFile: (directory: string, content: string) => void = () => undefined,
  directory = "",
): AsyncGenerator<LocalEntry> {
  const names = (await readdir(localPath(root, directory), { encoding: "buffer" })).toSorted(Buffer.compare);
  for (const name of ignoreFiles) {
    const content = await unlessGone(readFile(localPath(root, below(directory, name)), "latin1"));
    if (content === undefined) continue;
    filter.addIgnoreFile(directory, content);
    onIgnoreFile(directory, content);
  }
  for (const name of names) {
    const relativePath = below(directory, decodePath(name));
    const path = localPath(root, relativePath);
    const stats = await unlessGone(lstat(path, { bigint: true }));
    if (stats === undefined) continue;
    if (filter.includes(relativePath, stats.isDirectory())) yield { relativePath, path, stats };
    if (stats.isDirectory() && filter.enters(relativePath))
      yield* walkLocal(root, filter, ignoreFiles, onIgnoreFile, relativePath);
  }
}

function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
