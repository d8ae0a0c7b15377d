import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** What takes long to make is kept between runs, under a name that changes with what it is made of. Returns its path. */
export function cached(name: string, madeOf: string, make: (path: string) => void): string {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "picod");
  const path = join(cache, `${name}-${createHash("sha256").update(madeOf).digest("hex").slice(0, 12)}`);
  if (existsSync(path)) return path;
  const unfinished = `${path}.${process.pid}`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(dirname(unfinished), { recursive: true });
  make(unfinished);
  renameSync(unfinished, path);
  return path;
}
