// Builds dist/ (or $PICOD_DIST): a folder that holds everything the daemon needs, to be copied into an image as it is.
//   dist/picod              launcher (POSIX shell)
//   dist/picod.cjs          loads the daemon together with its code cache
//   dist/daemon.cjs         the daemon, one file
//   dist/daemon.cache       V8's code cache for it
//   dist/*.cjs             what it loads besides: see bundles.mjs
//   dist/terminal           the page that is served on /terminal
//   dist/node               the Node that the repository pins
//   dist/client             the TypeScript client, "picod/client"
//   dist/node_modules/…     koffi, the one native library
//   dist/bundled.json       what is bundled of other packages, with licences; for the packages' SBOM
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";
import { BUNDLES, LOADED_BUNDLES } from "./bundles.mjs";
import { writeCodeCache } from "./code-cache.mjs";
import { lazyBuiltins, lazyDescriptors, lazyParts } from "./lazy-modules.mjs";
import { fillLauncher } from "./node-flags.mjs";
import { npmPackages, writeLicences } from "./third-party.mjs";

const root = join(import.meta.dirname, "..");
const dist = process.env.PICOD_DIST ?? join(root, "dist");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

// Paths relative to there are in comments of the bundles.
const everywhere = { absWorkingDir: root, metafile: true, bundle: true };
// CommonJS, because an ES module that imports node:http makes Node load all of fetch and WebSocket to fill in its exports.
const common = { ...everywhere, platform: "node", format: "cjs", target: "node22", legalComments: "linked" };
const daemon = await build({
  ...common,
  entryPoints: [join(root, "src/main.ts")],
  outfile: join(dist, "daemon.cjs"),
  external: ["koffi", ...LOADED_BUNDLES],
  plugins: [lazyBuiltins, lazyParts, lazyDescriptors],
  // Otherwise import() stays, which a script that was not loaded as a module cannot do.
  supported: { "dynamic-import": false },
  define: { PICOD_VERSION: JSON.stringify(version), PICOD_COMMIT: JSON.stringify(commit()) },
  // V8 keeps the source in memory. Names stay, for the stacks in the log.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 160,
  sourcemap: "linked",
});
const apart = await Promise.all(
  BUNDLES.map(({ name, entry }) =>
    build({
      ...common,
      entryPoints: [resolve(root, entry)],
      outfile: join(dist, `${name}.cjs`),
      external: ["koffi"],
      supported: { "dynamic-import": false },
    }),
  ),
);
const page = await build({
  ...everywhere,
  minify: true,
  platform: "browser",
  format: "esm",
  target: "es2022",
  legalComments: "eof",
  entryPoints: ["page.ts", "page.css"].map((file) => ({ in: join(root, "src/api/http/terminal-page", file), out: "terminal" })),
  outdir: join(dist, "terminal"),
});
cpSync(join(root, "src/api/http/terminal-page/index.html"), join(dist, "terminal/index.html"));

// The client, for those who import "picod/client"; not a part of the daemon.
const client = await build({
  ...common,
  format: "esm",
  entryPoints: [join(root, "src/client/index.ts")],
  outfile: join(dist, "client/index.mjs"),
});
execFileSync("tsc", ["--project", join(root, "tsconfig.client.json"), "--outDir", join(dist, "client/types")], {
  stdio: "inherit",
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
const loader = readFileSync(join(root, "scripts/load.cjs"), "utf8");
writeFileSync(join(dist, "picod.cjs"), loader.replace("LOADED_BUNDLES", JSON.stringify(LOADED_BUNDLES)));
const launcher = readFileSync(join(root, "scripts/launcher.sh"), "utf8");
writeFileSync(join(dist, "picod"), fillLauncher(launcher));
chmodSync(join(dist, "picod"), 0o755);
const bundles = [daemon, ...apart, page, client].map(({ metafile }) => metafile);
const bundled = npmPackages(root, bundles, ["koffi"]);
writeFileSync(join(dist, "THIRD-PARTY-LICENSES.txt"), writeLicences(bundled));
writeFileSync(join(dist, "bundled.json"), JSON.stringify({ commit: commit(), bundled }));
writeCodeCache(dist, [join(dist, "node")]);

/** The binary itself: node_modules/.bin/node is a link into a package for this architecture. */
function realNode() {
  return join(dirname(require.resolve("node/package.json")), "bin/node");
}

/** Of the sources, when they are in git or $PICOD_COMMIT says it; otherwise "". The same sources give the same. */
function commit() {
  if (process.env.PICOD_COMMIT !== undefined) return process.env.PICOD_COMMIT;
  const git = (...args) => spawnSync("git", args, { cwd: root, encoding: "utf8" });
  // A repository around a copy of the sources is not theirs.
  if (!existsSync(join(root, ".git"))) return "";
  const { status, stdout } = git("rev-parse", "HEAD");
  if (status !== 0) return "";
  return `${stdout.trim()}${git("status", "--porcelain").stdout === "" ? "" : "-dirty"}`;
}
