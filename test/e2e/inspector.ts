import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cachePath } from "./cache.js";

const run = promisify(execFile);
const folder = join(import.meta.dirname, "inspector");
const { PATH = "" } = process.env;

/** Installs the MCP inspector as its lock file has it, if no run before this one has. Resolves with its program. */
export async function installInspector(): Promise<string> {
  const installed = cachePath("inspector", readFileSync(join(folder, "package-lock.json"), "utf8"));
  if (!existsSync(installed)) {
    const unfinished = `${installed}.${process.pid}`;
    mkdirSync(unfinished, { recursive: true });
    cpSync(folder, unfinished, { recursive: true });
    // Pictures and key rings are not for its command line.
    await run("npm", ["ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: unfinished });
    renameSync(unfinished, installed);
  }
  return join(installed, "node_modules/.bin/mcp-inspector");
}

/** Runs its command line and resolves with the JSON that it prints. @throws when it fails, with all that it said. */
export async function inspect(inspector: string, home: string, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const options = { env: { PATH, HOME: home }, maxBuffer: 2 ** 26 };
  const { stdout } = await run(process.execPath, [inspector, "--cli", ...args], options);
  return JSON.parse(stdout);
}
