// Builds dist/ (or $PICOD_DIST): a folder that holds everything the daemon needs, to be copied into an image as it is.
//   dist/picod              launcher (POSIX shell)
//   dist/picod.mjs          the daemon, one file
//   dist/node               the Node that the repository pins
//   dist/node_modules/…     koffi, the one native library
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
const dist = process.env.PICOD_DIST ?? join(root, "dist");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

await build({
  entryPoints: [join(root, "src/main.ts")],
  outfile: join(dist, "picod.mjs"),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22",
  external: ["koffi"],
  define: { PICOD_VERSION: JSON.stringify(version) },
  sourcemap: "linked",
  legalComments: "linked",
  // Bundled CommonJS packages ask for Node's modules with require.
  banner: {
    js: 'import { createRequire as picodCreateRequire } from "node:module"; const require = picodCreateRequire(import.meta.url);',
  },
});

const require = createRequire(import.meta.url);
const packageFolder = (name) => join(root, "node_modules", name);
const native = `@koromix/koffi-linux-${process.arch}`;
for (const name of ["koffi", native]) {
  const skipped = ["doc", "vendor"].map((folder) => join(packageFolder(name), folder));
  cpSync(packageFolder(name), join(dist, "node_modules", name), { recursive: true, filter: (path) => !skipped.includes(path) });
}
cpSync(realNode(), join(dist, "node"));
cpSync(join(root, "LICENSE"), join(dist, "LICENSE"));
writeFileSync(join(dist, "picod"), readFileSync(join(root, "scripts/launcher.sh")));
chmodSync(join(dist, "picod"), 0o755);

/** The binary itself: node_modules/.bin/node is a link into a package for this architecture. */
function realNode() {
  return join(dirname(require.resolve("node/package.json")), "bin/node");
}
