import { lstat, readdir, rename, rm } from "node:fs/promises";

/**
 * Moves what is in a directory into another one, which is made when it is missing. What has the name of a file or link is replaced, a
 * directory by a directory only when that is a real one: nothing goes through a link. @throws what node:fs does, EISDIR among it.
 */
export async function mergeLocal(from: Buffer, to: Buffer): Promise<void> {
  if (await isAbsent(to)) return rename(from, to);
  for (const name of await readdir(from, { encoding: "buffer" })) {
    const [source, destination] = [from, to].map((path) => Buffer.concat([path, Buffer.from("/"), name])) as [Buffer, Buffer];
    if (!(await lstat(source)).isDirectory()) {
      await rename(source, destination);
      continue;
    }
    if (await isOther(destination)) await rm(destination);
    await mergeLocal(source, destination);
  }
}

async function isAbsent(path: Buffer): Promise<boolean> {
  return (await look(path)) === undefined;
}

async function isOther(path: Buffer): Promise<boolean> {
  const stats = await look(path);
  return stats !== undefined && !stats.isDirectory();
}

async function look(path: Buffer) {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
