import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NODE_FLAGS } from "./node-flags.mjs";

/** Emulated programs are slow. */
const TIMEOUT_MS = 300_000;
const INHERITED = 3;
const MAX_ATTEMPTS = 6;

/** With these V8 writes the same bytes of the same functions: no random seeds, and no traces of what was often called. */
const SAME_BYTES = [
  "--predictable",
  "--no-flush-bytecode",
  "--no-opt",
  "--no-maglev",
  "--no-sparkplug",
  "--no-profile-guided-optimization",
];
/** In the header of a cache, see SerializedCodeData in V8's src/snapshot/code-serializer.h. */
const FLAGS_HASH_OFFSET = 12;

/**
 * Writes daemon.cache of a folder with a daemon: the same bytes every time. It is written twice, by the daemon that was in use and by
 * one that has read it and done nothing, since the order of things in the first depends on time. V8 takes a cache only under the flags that it was made
 * under: the hash of the daemon's own is written in the place of that of SAME_BYTES.
 *
 * @param node the command that starts the Node it is for: V8 takes a cache of its own version only.
 * @throws when it cannot be made, or V8 would not take it.
 */
export function writeCodeCache(folder, node) {
  const path = join(folder, "daemon.cache");
  const load = `process.argv.push("--version");
    const script = require(${JSON.stringify(join(folder, "picod.cjs"))});
    if (script.cachedDataRejected) process.exit(3);`;
  const rewrite = `${load} fs.writeFileSync(${JSON.stringify(path)}, script.createCachedData())`;
  const read = `new vm.Script("").createCachedData().readUInt32LE(${FLAGS_HASH_OFFSET})`;
  const flagsHash = Number(runNode(folder, node, ["--print", read]));
  rmSync(path, { force: true });
  writeSameTwice(path, () => {
    runNode(folder, node, [...SAME_BYTES, join(import.meta.dirname, "write-code-cache.cjs"), folder]);
    runNode(folder, node, [...SAME_BYTES, "--eval", rewrite]);
  });
  const cache = readFileSync(path);
  cache.writeUInt32LE(flagsHash, FLAGS_HASH_OFFSET);
  writeFileSync(path, cache);
  runNode(folder, node, ["--eval", load]);
}

/** A machine that stands still for seconds can still change what runs. @throws when no two runs give the same. */
function writeSameTwice(path, write) {
  let previous;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    write();
    const cache = readFileSync(path);
    if (previous?.equals(cache)) return;
    previous = cache;
  }
  throw new Error(`${path} is not the same twice in ${MAX_ATTEMPTS} attempts`);
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
