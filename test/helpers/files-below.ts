import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Paths of the regular files below a directory. Node's own way of listing them goes through links to directories. */
export function* filesBelow(directory: string): Generator<string> {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const stats = lstatSync(path);
    if (stats.isDirectory()) yield* filesBelow(path);
    else if (stats.isFile()) yield path;
  }
}
