// Runs the official conformance runner of the Connect protocols against PicoD's server, then the clients of test/interop that are
// written in Go against the daemon. Arguments go to the runner, which is then run alone:
//   npm run test:conformance -- --run '**/Protocol:PROTOCOL_GRPC/**' --trace
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { LOADED_BUNDLES } from "../../scripts/bundles.mjs";

const RUNNER = "connectrpc.com/conformance";
const RUNNER_VERSION = "v1.0.7";
const GO_MISSING =
  "go not found: the conformance runner and two of the clients are programs in Go, install its toolchain (1.26 or newer)";
const root = join(import.meta.dirname, "../..");
/** Nothing of it is committed: what is the runner's own is taken from its module. */
const cache = join(root, "node_modules/.cache/picod-conformance");

mkdirSync(cache, { recursive: true });
const runner = buildRunner();
generate(moduleFolder());
run("tsc", ["--noEmit", "--project", join(import.meta.dirname, "tsconfig.json")]);
await bundleServer();
const args = process.argv.slice(2);
const failed = runConformance(args);
process.exitCode = failed || (args.length === 0 ? runClients() : 0);

function buildRunner() {
  const folder = join(cache, RUNNER_VERSION);
  const path = join(folder, "connectconformance");
  if (existsSync(path)) return path;
  run("go", ["install", `${RUNNER}/cmd/connectconformance@${RUNNER_VERSION}`], { env: { ...process.env, GOBIN: folder } });
  return path;
}

/** Where Go keeps the runner's sources, its .proto files among them. */
function moduleFolder() {
  const listed = run("go", ["mod", "download", "-json", `${RUNNER}@${RUNNER_VERSION}`], { stdio: ["ignore", "pipe", "inherit"] });
  return JSON.parse(listed).Dir;
}

function generate(folder) {
  const plugin = { local: "protoc-gen-es", out: join(cache, "gen"), opt: ["target=js+dts", "import_extension=js"] };
  const template = JSON.stringify({ version: "v2", clean: true, plugins: [plugin] });
  run("buf", ["generate", join(folder, "proto"), "--template", template], { cwd: cache });
}

async function bundleServer() {
  await build({
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    entryPoints: [join(import.meta.dirname, "server.ts")],
    outfile: join(cache, "server.cjs"),
    tsconfig: join(import.meta.dirname, "tsconfig.json"),
    external: ["koffi", "pino-pretty", ...LOADED_BUNDLES],
    sourcemap: "linked",
  });
}

/** Fails on every case that does not end as the list of known failures says, those that pass unexpectedly among them. */
function runConformance(args) {
  const settings = [
    ["--mode", "server", "--verbose"],
    ["--conf", join(import.meta.dirname, "config.yaml")],
    ["--known-failing", `@${join(import.meta.dirname, "known-failing.txt")}`],
  ].flat();
  const server = [process.execPath, join(cache, "server.cjs")];
  return spawnSync(runner, [...settings, ...args, "--", ...server], { stdio: "inherit" }).status ?? 1;
}

function runClients() {
  return spawnSync("vitest", ["run", "--config", "vitest.conformance.config.ts"], { cwd: root, stdio: "inherit" }).status ?? 1;
}

/** Returns what it printed, if that was asked for. Ends this program, and says why, when there is no such command or it fails. */
function run(command, args, options = {}) {
  const { error, status, stdout } = spawnSync(command, args, { stdio: "inherit", encoding: "utf8", ...options });
  if (status === 0) return stdout;
  const missing = command === "go" ? GO_MISSING : `${command} not found: run npm ci`;
  process.stderr.write(
    error?.code === "ENOENT" ? `${missing}\n` : `${command} ${args.join(" ")} failed with ${error ?? status}\n`,
  );
  process.exit(1);
}
