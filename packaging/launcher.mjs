import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HEAP_MIB, NODE_FLAGS } from "../scripts/node-flags.mjs";
import { run } from "./run.mjs";

const TARGETS = { x64: "x86_64-linux-musl", arm64: "aarch64-linux-musl" };
const OPTIONS = [
  ...["-std=c2x", "-Os", "-g0", "-Wall", "-Wextra", "-Werror"],
  // No C library, and nothing that a loader would have to do for it.
  ...["-ffreestanding", "-nostdlib", "-fPIE", "-pie", "-fvisibility=hidden", "-fno-stack-protector", "-fno-sanitize=undefined"],
  "-Wl,--build-id=none",
];

/** Compiles the launcher of an architecture. The same sources give the same bytes: the compiler is pinned. */
export function compileLauncher(cache, arch, libraries, output) {
  const sources = join(import.meta.dirname, "launcher");
  const definitions = [
    `-DNODE_FLAGS=${listOf(NODE_FLAGS)}`,
    `-DLIBRARY_NAMES=${listOf(libraries)}`,
    `-DMAX_HEAP_MIB=${HEAP_MIB.max}`,
    `-DMIN_HEAP_MIB=${HEAP_MIB.min}`,
  ];
  const args = ["-m", "ziglang", "cc", "-target", TARGETS[arch], ...OPTIONS, ...definitions, "launcher.c", "-o", output];
  const folder = mkdtempSync(join(cache, "zig-"));
  try {
    const env = { PATH: process.env.PATH, ZIG_LOCAL_CACHE_DIR: folder, ZIG_GLOBAL_CACHE_DIR: folder };
    run(compiler(cache), args, { cwd: sources, env });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As C has it: every text ends with a NUL, and so does the list. */
function listOf(texts) {
  return `"${texts.map((text) => `${text}\\0`).join("")}"`;
}

/** The Python of a virtual environment with the compiler, made once for each version of its requirements. */
function compiler(cache) {
  const requirements = join(import.meta.dirname, "requirements.txt");
  const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const venv = join(cache, `compiler-${version}`);
  if (!existsSync(join(venv, "complete"))) {
    rmSync(venv, { recursive: true, force: true });
    run("python3", ["-m", "venv", venv]);
    run(join(venv, "bin/pip"), [
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--require-hashes",
      "--requirement",
      requirements,
    ]);
    cpSync(requirements, join(venv, "complete.new"));
    renameSync(join(venv, "complete.new"), join(venv, "complete"));
  }
  return join(venv, "bin/python");
}
