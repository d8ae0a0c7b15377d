// npm run package: makes every artefact below a folder, with SHA256SUMS. See docs/packaging.md.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeArchive } from "./archive.mjs";
import { makeFolder } from "./folder.mjs";
import { makeNpmPackage } from "./npm-package.mjs";
import { makePythonPackages } from "./python-package.mjs";
import { run } from "./run.mjs";
import { makeSingleFile } from "./single-file.mjs";

const USAGE = `usage: npm run package -- [options]

  --out FOLDER         where the artefacts go (default: packages/)
  --arch NAMES         x64, arm64 or both, comma-separated (default: both; the other one than this machine's needs qemu-user-static)
  --folder FOLDER      make only the folder, of this machine's architecture, there: for an image
  --libraries FOLDER   take the Debian packages from there instead of downloading the newest ones of the release

Needs Debian's apt and dpkg, python3 with venv, and a network. SOURCE_DATE_EPOCH is the time in archives (default: of the commit).
`;

const root = join(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "packages") },
    arch: { type: "string", default: "x64,arm64" },
    folder: { type: "string" },
    libraries: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help) process.stdout.write(USAGE);
else main();

function main() {
  process.env.SOURCE_DATE_EPOCH ??= timeOfCommit();
  const cache = process.env.PICOD_PACKAGING_CACHE ?? join(root, "node_modules/.cache/picod-packaging");
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), "picod-package-"));
  try {
    const dist = join(work, "dist");
    run(process.execPath, [join(root, "scripts/build.mjs")], { env: { ...process.env, PICOD_DIST: dist } });
    const libraries = values.libraries === undefined ? undefined : resolve(values.libraries);
    if (values.folder !== undefined) makeFolder({ arch: process.arch, cache, dist, folder: resolve(values.folder), libraries });
    else makeAll({ cache, dist, work, libraries, out: resolve(values.out) });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function makeAll({ cache, dist, work, libraries, out }) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const arch of values.arch.split(",")) {
    const name = `picod-${version}-linux-${arch}`;
    makeFolder({ arch, cache, dist, folder: join(work, name), libraries });
    makeSingleFile(join(work, name), join(out, name));
    makeArchive(work, name, join(out, `${name}.tar.gz`));
    cpSync(join(work, name, "sbom.cdx.json"), join(out, `${name}.cdx.json`));
  }
  makeNpmPackage({ root, dist, work, out });
  makePythonPackages({ root, out });
  const sums = readdirSync(out)
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(out, name)))
          .digest("hex")}  ${name}\n`,
    );
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  process.stdout.write(sums.join(""));
}

/** Of sources that are not in git: the beginning of 1980, before which zip files cannot be. */
function timeOfCommit() {
  try {
    return run("git", ["log", "-1", "--format=%ct"], { cwd: root }).trim();
  } catch {
    return "315532800";
  }
}
