// A package as a folder: everything that the daemon needs in a root that has nothing.
//   picod               the launcher, a static program
//   picod.cjs, *.cjs    as in dist/
//   daemon.cache        V8's code cache, made by the Node beside it
//   terminal            the page that is served on /terminal
//   node                Node, without its symbol tables
//   lib                 the loader and the libraries of a C library, and koffi.node
//   sbom.cdx.json       what all of it is made of, CycloneDX
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAM_FILES } from "../scripts/bundles.mjs";
import { writeCodeCache } from "../scripts/code-cache.mjs";
import { writeLicences } from "../scripts/third-party.mjs";
import { withoutSections } from "./elf.mjs";
import { debianPackages, npmPackage } from "./inputs.mjs";
import { compileLauncher } from "./launcher.mjs";
import { setModes } from "./modes.mjs";
import { makeSbom } from "./sbom.mjs";

/** What Node is linked to, in that order (readelf --dynamic), then the daemon's own. */
const LIBRARIES = ["libdl.so.2", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libc.so.6", "koffi.node"];
const LOADERS = { x64: "ld-linux-x86-64.so.2", arm64: "ld-linux-aarch64.so.1" };
const LIBRARY_FOLDERS = { x64: "lib/x86_64-linux-gnu", arm64: "lib/aarch64-linux-gnu" };
const EMULATORS = { x64: "qemu-x86_64-static", arm64: "qemu-aarch64-static" };
const SHARED = [...PROGRAM_FILES, "terminal", "LICENSE"];

/** @param dist what `npm run build` made. */
export function makeFolder({ arch, cache, dist, folder, libraries }) {
  const { version, devDependencies, dependencies } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../package.json"), "utf8"),
  );
  const node = npmPackage(cache, `node-linux-${arch}`, devDependencies.node);
  const native = npmPackage(cache, `@koromix/koffi-linux-${arch}`, dependencies.koffi);
  const debian = debianPackages(cache, arch, libraries);

  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "lib"), { recursive: true });
  for (const name of SHARED) cpSync(join(dist, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, "node"), withoutSections(readFileSync(join(node.folder, "bin/node"))));
  writeFileSync(join(folder, "lib/loader"), readDebianFile(debian, arch, LOADERS[arch]));
  for (const name of LIBRARIES.slice(0, -1)) writeFileSync(join(folder, "lib", name), readDebianFile(debian, arch, name));
  cpSync(join(native.folder, `linux_${arch}/koffi.node`), join(folder, "lib/koffi.node"));
  writeNotices({ folder, dist, version, arch }, { node, native, debian });
  compileLauncher(cache, arch, LIBRARIES, join(folder, "picod"));
  setModes(folder);

  const loader = [join(folder, "lib/loader"), "--library-path", join(folder, "lib"), join(folder, "node")];
  writeCodeCache(folder, arch === process.arch ? loader : [EMULATORS[arch], ...loader]);
  setModes(folder);
}

function writeNotices({ folder, dist, version, arch }, { node, native, debian }) {
  const { commit, bundled } = JSON.parse(readFileSync(join(dist, "bundled.json"), "utf8"));
  const nodeLicence = { ...node, name: "node", texts: [readFileSync(join(node.folder, "LICENSE"), "utf8").trimEnd()] };
  const others = [...bundled, nodeLicence, ...debian.filter(({ texts }) => texts.length > 0)];
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), writeLicences(others));
  writeFileSync(join(folder, "sbom.cdx.json"), makeSbom({ version, arch, commit }, { bundled, node, native, debian }));
}

function readDebianFile(packages, arch, name) {
  for (const { folder } of packages) {
    for (const parent of [LIBRARY_FOLDERS[arch], `usr/${LIBRARY_FOLDERS[arch]}`]) {
      const path = join(folder, parent, name);
      if (existsSync(path)) return readFileSync(path);
    }
  }
  throw new Error(`no Debian package for ${arch} has ${name}`);
}
