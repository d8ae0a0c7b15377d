import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cachePath } from "./cache.js";

const requirements = join(import.meta.dirname, "requirements.txt");

/** The Python environment with what requirements.txt names. */
function environmentPath(): string {
  return cachePath("python", readFileSync(requirements, "utf8"));
}

/** Makes it, if no run before this one has. */
export function installPythonTools(): void {
  const environment = environmentPath();
  if (existsSync(environment)) return;
  const unfinished = `${environment}.${process.pid}`;
  execFileSync("python3", ["-m", "venv", unfinished], { stdio: "inherit" });
  execFileSync(join(unfinished, "bin/python3"), ["-m", "pip", "install", "--quiet", "--requirement", requirements], {
    stdio: "inherit",
  });
  renameSync(unfinished, environment);
}

/** Runs one of its programs; returns all output. @throws when it fails. Python's own go by `python3 -m`, since the folder was renamed. */
export async function runPythonTool(name: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(join(environmentPath(), "bin", name), args);
  return stdout + stderr;
}
