import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { NODE_FLAGS } from "./node-flags.mjs";

/** Emulated programs are slow. */
const TIMEOUT_MS = 300_000;
const INHERITED = 3;

/**
 * Writes daemon.cache of a folder with a daemon.
 *
 * @param node the command that starts the Node it is for: V8 takes a cache of its own version only.
 * @throws when it cannot be made, or V8 would not take it.
 */
export function writeCodeCache(folder, node) {
  const flagsHash = runNode(folder, node, ["--print", "new vm.Script('').createCachedData().readUInt32LE(12)"]).trim();
  runNode(folder, node, ["--predictable", join(import.meta.dirname, "write-code-cache.cjs"), folder, flagsHash]);
  const script = JSON.stringify(join(folder, "picod.cjs"));
  runNode(folder, node, ["--eval", `process.argv.push("--version"); if (require(${script}).cachedDataRejected) process.exit(3)`]);
}

/** Under the flags of the daemon, and with its native library where a package has it. Returns what was printed. */
function runNode(folder, node, args) {
  const path = join(folder, "lib/koffi.node");
  const native = existsSync(path) ? openSync(path) : undefined;
  const { status, stdout, stderr } = spawnSync(node[0], [...node.slice(1), ...NODE_FLAGS, ...args], {
    env: { PATH: process.env.PATH, ...(native === undefined ? {} : { PICOD_LIBRARIES: String(INHERITED) }) },
    stdio: ["ignore", "pipe", "pipe", native ?? "ignore"],
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  if (native !== undefined) closeSync(native);
  if (status !== 0)
    throw new Error(`cannot write the code cache: ${node.join(" ")} ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}
