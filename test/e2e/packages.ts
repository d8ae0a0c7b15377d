import { readFileSync } from "node:fs";
import { join } from "node:path";

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")) as { version: string };

/** Of `npm run package`, which test/e2e/setup.ts has run: by default the single file. */
export function packagePath(arch: string, suffix = ""): string {
  return artefact(`picod-${version}-linux-${arch}${suffix}`);
}

export function npmPackagePath(): string {
  return artefact(`picod-${version}.tgz`);
}

export function pythonPackagePaths(): { wheel: string; sourceDistribution: string } {
  return { wheel: artefact(`picod-${version}-py3-none-any.whl`), sourceDistribution: artefact(`picod-${version}.tar.gz`) };
}

/** The unpacked folder. */
export function packageFolder(arch: string): string {
  return join(fromSetup("PICOD_E2E_FOLDERS"), `picod-${version}-linux-${arch}`);
}

export function artefact(name: string): string {
  return join(fromSetup("PICOD_E2E_PACKAGES"), name);
}

function fromSetup(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: test/e2e/setup.ts did not run`);
  return value;
}

/** For startDaemon's `wrapper`: starts another program than dist/picod, with the same arguments. */
export function insteadOfDist(...command: string[]): readonly string[] {
  const words = command.map((word) => `'${word}'`).join(" ");
  return ["sh", "-c", `shift; exec ${words} "$@"`, "sh"];
}
