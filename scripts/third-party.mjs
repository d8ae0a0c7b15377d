// What is bundled of other people's work, and under which licences.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.|-|$)/i;
/** Packages that have a licence in a source file alone. */
const IN_COMMENTS = { "@bufbuild/protobuf": ["dist/esm/wire/varint.js"] };
const RULE = "=".repeat(80);

/** The npm packages that esbuild took something of, by its metafiles (a plugin's files are `NAMESPACE:path`), and others by name: `{ name, version, license, texts }`, sorted. */
export function npmPackages(root, metafiles, names = []) {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = inputs.flatMap((path) => /(?<=^|:)[^:]*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const packages = [...new Set([...folders, ...names.map((name) => `node_modules/${name}`)])].map((folder) =>
    readPackage(join(root, folder)),
  );
  return packages.sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1));
}

/** Of the package in a folder. @throws when it does not say what its licence is, or does not have its text. */
export function readPackage(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const own = readLicences(folder);
  // Apache's is the one licence whose text names nobody, so that PicoD's own copy will do.
  const found = own.length === 0 && license?.includes("Apache-2.0") ? readLicences(join(import.meta.dirname, "..")) : own;
  const texts = [...found, ...readLicenceComments(folder, name)];
  if (license === undefined || texts.length === 0) throw new Error(`${name}@${version} comes without a licence`);
  return { name, version, license, texts };
}

/** The texts for people, of packages as above; `license` may be missing where the texts tell. */
export function writeLicences(packages) {
  return packages
    .map(({ name, version, license, texts }) =>
      [RULE, `${name} ${version}${license ? ` (${license})` : ""}`, RULE, "", ...texts, ""].join("\n"),
    )
    .join("\n");
}

/** The first comment of a source file, without its slashes. */
function readLicenceComments(folder, name) {
  return (IN_COMMENTS[name] ?? []).map((file) => {
    const lines = readFileSync(join(folder, file), "utf8").split("\n");
    const end = lines.findIndex((line) => !line.startsWith("//"));
    return lines
      .slice(0, end)
      .map((line) => line.replace(/^\/\/ ?/, ""))
      .join("\n");
  });
}

function readLicences(folder) {
  const names = readdirSync(folder).filter((name) => LICENCE_FILE.test(name) && !name.endsWith(".js"));
  return names.sort().map((name) => readFileSync(join(folder, name), "utf8").trimEnd());
}
