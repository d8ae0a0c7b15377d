import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const scripts = join(import.meta.dirname, "../../scripts");

/** For the first call, which makes the environment of those clients: so long that takes on a slow machine. */
export const PYTHON_CLIENT_MS = 20 * 60_000;

/** Runs a program of this directory with the Python clients of others; it must print "done" at its end. Rejects with what it printed. */
export async function runPythonClient(program: string, ...args: readonly string[]): Promise<void> {
  const { stdout: environment } = await run("sh", [join(scripts, "compat-venv.sh")]);
  const { PATH = "" } = process.env;
  const options = { env: { PATH, PYTHONUNBUFFERED: "1" }, maxBuffer: 2 ** 26 };
  const { stdout, stderr } = await run(
    join(environment.trim(), "bin/python"),
    [join(import.meta.dirname, program), ...args],
    options,
  );
  if (!stdout.endsWith("done\n")) throw new Error(`${program} did not reach its end: ${stdout}${stderr}`);
}
