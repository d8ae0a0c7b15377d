import { rmSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.mjs";

/** The Python SDK as wheel and source distribution. */
export function makePythonPackages({ root, out }) {
  const venv = run("sh", [join(root, "scripts/python-venv.sh")]).trim();
  run(join(venv, "bin/python"), ["-m", "hatchling", "build", "--directory", out], { cwd: join(root, "sdk/python") });
  rmSync(join(out, ".gitignore"), { force: true });
}
