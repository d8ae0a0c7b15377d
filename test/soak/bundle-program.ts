import { basename } from "node:path";
import { build } from "esbuild";
import type { TemporaryDirectory } from "../helpers/temporary-directory.js";

/** One file for Node of a program in TypeScript and of all that it imports. Returns its path. */
export async function bundleProgram(source: string, directory: TemporaryDirectory): Promise<string> {
  const outfile = `${directory.path}/${basename(source, ".ts")}.mjs`;
  await build({ entryPoints: [source], outfile, bundle: true, platform: "node", format: "esm", target: "node22" });
  return outfile;
}
