import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describeCalls } from "./calls.js";
import { driveClient } from "./driven-client.js";

const scripts = join(import.meta.dirname, "../../scripts");

describeCalls("grpcio", (address) => {
  const venv = execFileSync("sh", [join(scripts, "python-venv.sh")], { encoding: "utf8" }).trim();
  return driveClient(`${venv}/bin/python`, [join(import.meta.dirname, "grpcio_client.py"), address]);
});
