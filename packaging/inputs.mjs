// What goes into a package beside PicoD itself: Node, the native part of koffi, and the C and C++ libraries that both need.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./run.mjs";

const INPUTS = JSON.parse(readFileSync(join(import.meta.dirname, "inputs.json"), "utf8"));
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const DEBIAN_NAMES = { x64: "amd64", arm64: "arm64" };

/** Unpacks an npm package. Returns `{ name, version, license, integrity, folder }`. @throws when it is not the one of inputs.json. */
export function npmPackage(cache, name, version) {
  const pinned = INPUTS.npm[`${name}@${version}`];
  if (pinned === undefined) {
    throw new Error(
      `packaging/inputs.json has no ${name}@${version}: add what "npm view ${name}@${version} dist.integrity" prints`,
    );
  }
  const folder = join(cache, `${name}@${version}`.replaceAll("/", "-"));
  if (!existsSync(folder)) makeWhole(folder, (work) => unpackNpmPackage(work, `${name}@${version}`, pinned));
  const { license } = JSON.parse(readFileSync(join(folder, "package/package.json"), "utf8"));
  return { name, version, license, integrity: pinned, folder: join(folder, "package") };
}

function unpackNpmPackage(work, specifier, pinned) {
  run("npm", ["pack", "--silent", specifier], { cwd: work });
  const [archive] = readdirSync(work);
  const digest = createHash("sha512").update(readFileSync(join(work, archive)));
  const integrity = `sha512-${digest.digest("base64")}`;
  if (integrity !== pinned) throw new Error(`${specifier} is not what packaging/inputs.json names: ${integrity}`);
  run("tar", ["-xzf", archive], { cwd: work });
}

/**
 * Debian packages with the C and C++ libraries: the newest of the pinned release that the mirror of this machine's apt has, or those
 * of a folder, to build a package again from what its SBOM names. Returns `{ name, version, architecture, sha256, texts, folder }`
 * of each.
 */
export function debianPackages(cache, arch, given) {
  const source = given ?? downloadDebianPackages(cache, arch);
  return INPUTS.debian.packages.map((name) => {
    const file = readdirSync(source).find(
      (entry) => entry.startsWith(`${name}_`) && entry.endsWith(`_${DEBIAN_NAMES[arch]}.deb`),
    );
    if (file === undefined) throw new Error(`${source} has no ${name} for ${DEBIAN_NAMES[arch]}`);
    const path = join(source, file);
    const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
    const folder = join(cache, `${name}-${sha256.slice(0, 16)}`);
    if (!existsSync(folder)) makeWhole(folder, (work) => run("dpkg-deb", ["--extract", path, work]));
    const version = run("dpkg-deb", ["--field", path, "Version"]).trim();
    return { name, version, architecture: DEBIAN_NAMES[arch], sha256, texts: readCopyright(folder, name), folder };
  });
}

/** None where it is that of another package, to which its place is a link. */
function readCopyright(folder, name) {
  const path = join(folder, "usr/share/doc", name, "copyright");
  return existsSync(path) ? [readFileSync(path, "utf8").trimEnd()] : [];
}

/** With a state of its own, since this machine's apt need not know the other architecture. */
function downloadDebianPackages(cache, arch) {
  const work = join(cache, `apt-${arch}`);
  rmSync(work, { recursive: true, force: true });
  for (const folder of ["lists/partial", "cache/archives/partial", "debs"]) mkdirSync(join(work, folder), { recursive: true });
  const format = ["--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages", "Origin: Debian", "Component: main"];
  const repositories = run("apt-get", ["indextargets", ...format])
    .trim()
    .split("\n");
  const wanted = repositories.filter((line) => line.split(" ")[1]?.startsWith(INPUTS.debian.suite));
  if (wanted.length === 0) {
    throw new Error(`apt has no Debian ${INPUTS.debian.suite} here (or apt-get update was never run): give --libraries FOLDER`);
  }
  const lines = wanted.map((line) => `deb [signed-by=${KEYRING}] ${line} main\n`);
  writeFileSync(join(work, "sources.list"), [...new Set(lines)].join(""));
  const settings = {
    "Dir::State": work,
    "Dir::State::lists": join(work, "lists"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": join(work, "cache"),
    "Dir::Etc::sourcelist": join(work, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "APT::Architecture": DEBIAN_NAMES[arch],
    "APT::Architectures": DEBIAN_NAMES[arch],
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  run("apt-get", [...options, "--quiet=2", "update"]);
  run("apt-get", [...options, "--quiet=2", "download", ...INPUTS.debian.packages], { cwd: join(work, "debs") });
  return join(work, "debs");
}

/** Fills a folder that has its name only when it is complete. */
function makeWhole(folder, fill) {
  mkdirSync(join(folder, ".."), { recursive: true });
  const work = mkdtempSync(`${folder}.`);
  try {
    fill(work);
    renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
