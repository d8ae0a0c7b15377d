import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAM_FILES } from "../scripts/bundles.mjs";
import { setModes } from "./modes.mjs";
import { run } from "./run.mjs";

/** What is not here is for one architecture: the Node beside it, its code cache and koffi, which npm installs. */
const FILES = ["picod", ...PROGRAM_FILES, "terminal", "client", "LICENSE", "THIRD-PARTY-LICENSES.txt"];
/** The native library, and what the types of the client are made of; everything else is bundled. */
const DEPENDENCIES = ["koffi", "@bufbuild/protobuf", "@connectrpc/connect"];
const FIELDS = ["name", "version", "description", "license", "type", "bin", "exports", "files", "engines", "os"];

/** Packs daemon and client for npm: `picod`, the command, and `picod/client`. */
export function makeNpmPackage({ root, dist, work, out }) {
  const source = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const folder = join(work, "npm");
  mkdirSync(join(folder, "dist"), { recursive: true });
  for (const name of FILES) cpSync(join(dist, name), join(folder, "dist", name), { recursive: true });
  for (const name of ["README.md", "LICENSE", "CHANGELOG.md"]) cpSync(join(root, name), join(folder, name));
  const manifest = {
    ...Object.fromEntries(FIELDS.map((field) => [field, source[field]])),
    dependencies: Object.fromEntries(DEPENDENCIES.map((name) => [name, source.dependencies[name]])),
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  setModes(folder);
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", out], { cwd: folder });
}
