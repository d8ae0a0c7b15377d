import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { startDaemon } from "./daemon.mjs";

const run = promisify(execFile);
export const TOKEN = "bench-token-8c1d07";
const ROOT = join(import.meta.dirname, "..");

/** Builds this tree beside what `npm run build` made, and returns the launcher. */
export async function buildPicod(directory) {
  const dist = join(directory, "dist");
  await run(process.execPath, [join(ROOT, "scripts/build.mjs")], { cwd: ROOT, env: { ...process.env, PICOD_DIST: dist } });
  return join(dist, "picod");
}

export function startPicod(name, launcher, directory, onDispose) {
  const env = { PATH: process.env.PATH, PICOD_ACCESS_TOKEN: TOKEN };
  const command = (port) => ({ argv: [launcher, "--host", "127.0.0.1", "--port", String(port), "--log-format", "json"], env });
  return startDaemon({ name, command, programs: [], directory, protocolFamily: "picod", onDispose });
}
