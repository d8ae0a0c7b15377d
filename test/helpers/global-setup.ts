import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { PICOD } from "./start-daemon.js";

/**
 * The tests run a copy of the built daemon in a place that every user may enter: some run it as nobody, and the repository may lie
 * in somebody's home.
 */
export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), "picod-dist-"));
  chmodSync(directory, 0o755);
  cpSync(dirname(PICOD), join(directory, "dist"), { recursive: true });
  process.env.PICOD_BIN = join(directory, "dist", basename(PICOD));
  return () => rmSync(directory, { recursive: true, force: true });
}
