// A package as one file: the launcher, and behind it what the folder holds, uncompressed, each part at a page of its own so that Node
// is mapped from it rather than copied.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transformSync } from "esbuild";

const MAGIC = "PICOD-PARTS-0001";
/** The largest page of the two architectures. */
const ALIGNMENT = 64 * 1024;

/** @param folder what makeFolder made. */
export function makeSingleFile(folder, output) {
  const launcher = readFileSync(join(folder, "picod"));
  const pieces = [launcher];
  let end = launcher.length;
  const add = (content) => {
    const padding = Buffer.alloc((ALIGNMENT - (end % ALIGNMENT)) % ALIGNMENT);
    const offset = end + padding.length;
    pieces.push(padding, content);
    end = offset + content.length;
    return [offset, content.length];
  };
  const addFile = (name) => add(readFileSync(join(folder, name)));

  const programs = { node: addFile("node"), loader: addFile("lib/loader") };
  const libraries = libraryNames(launcher).map((name) => addFile(`lib/${name}`));
  const files = Object.fromEntries(partNames(folder).map((name) => [name, addFile(name)]));
  const script = add(Buffer.from(`${loadScript(folder, files)}\0`));

  // struct index of launcher.c
  const index = launcher.indexOf(MAGIC);
  if (index < 0 || launcher.indexOf(MAGIC, index + 1) >= 0) throw new Error("the launcher does not have one index of parts");
  [programs.node, programs.loader, script, ...libraries].flat().forEach((number, i) => {
    launcher.writeBigUInt64LE(BigInt(number), index + MAGIC.length + 8 * i);
  });
  writeFileSync(output, Buffer.concat(pieces), { mode: 0o755 });
}

/** What the daemon reads by name: everything but programs, libraries and the script that loads the daemon. */
function partNames(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((name) => !name.startsWith("lib/") && !["picod", "picod.cjs", "node"].includes(name))
    .sort();
}

/** In the order of the launcher, which has them as one list. */
function libraryNames(launcher) {
  const first = launcher.indexOf("libdl.so.2\0");
  return launcher.subarray(first, launcher.indexOf("\0\0", first)).toString().split("\0");
}

/** scripts/load.cjs with the places of the parts, as an argument for `node --eval`. */
function loadScript(folder, files) {
  const source = readFileSync(join(folder, "picod.cjs"), "utf8");
  const { code } = transformSync(source, {
    platform: "node",
    format: "cjs",
    minify: true,
    target: "node24",
    define: { PICOD_PARTS: JSON.stringify(files) },
  });
  return code.trim();
}
