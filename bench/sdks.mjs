import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { startPicod } from "./picod.mjs";

const run = promisify(execFile);
/** A first install may have to download everything. */
const INSTALL_LIMIT_MS = 300_000;

/** picod once more for each SDK, which takes the place of the client in Go: the cost of a call as its users see it. */
export async function startSdks(launcher, directory, onDispose) {
  const script = join(import.meta.dirname, "../scripts/python-venv.sh");
  const { stdout: venv } = await run("sh", [script], { timeout: INSTALL_LIMIT_MS });
  const client = (file) => join(import.meta.dirname, "clients", file);
  const library = join(dirname(launcher), "client/index.mjs");
  const sdks = {
    "Python SDK": (address) => [join(venv.trim(), "bin/python"), client("python.py"), address],
    "TypeScript client": (address) => [process.execPath, client("typescript.mjs"), address, library],
  };
  const daemons = [];
  for (const [name, clientCommand] of Object.entries(sdks)) {
    const daemon = await startPicod(name.replaceAll(" ", "-"), launcher, directory, onDispose);
    daemons.push({ ...daemon, name, protocolFamily: "sdk", clientCommand: clientCommand(daemon.address) });
  }
  return daemons;
}
