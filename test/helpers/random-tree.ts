import { execFileSync } from "node:child_process";
import { closeSync, linkSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Numbers that look random and are the same for the same seed (mulberry32): at least 0, less than `below`. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

export interface RandomTreeOptions {
  /** Owners and device nodes, which only root can make; the default. */
  readonly privileged?: boolean;
}

/** Makes a tree of about a hundred entries of every kind. */
export function makeRandomTree(top: string, seed: number, { privileged = true }: RandomTreeOptions = {}): void {
  const random = randomNumbers(seed);
  const directories = [top];
  const files: string[] = [];
  const script: string[] = [];
  const last: string[] = [];
  mkdirSync(top);
  const kinds = ["directory", "file", "file", "large", "sparse", "link", "symlink", "dangling", "fifo", "device"];
  for (let index = 0; index < 100; index++) {
    const path = join(directories[random(directories.length)] as string, `${index}-näme ${random(1000)}`);
    const kind = kinds[random(kinds.length)];
    if (kind === "directory") {
      mkdirSync(path);
      directories.push(path);
    } else if (kind === "file") {
      writeFileSync(path, "x".repeat(random(20_000)));
    } else if (kind === "large") {
      writeFileSync(path, Buffer.alloc(100_000 + random(3_000_000), `${index} `));
    } else if (kind === "sparse") {
      makeSparse(path, random);
    } else if (kind === "link" && files.length > 0) {
      linkSync(files[random(files.length)] as string, path);
      continue;
    } else if (kind === "fifo") {
      script.push(`mkfifo '${path}'`);
    } else if (kind === "device" && privileged) {
      script.push(`mknod '${path}' c 1 3`);
    } else {
      symlinkSync(kind === "dangling" ? "nothing/here" : (files[0] ?? "nothing"), path);
      last.unshift(`touch -h -d @${random(2_000_000_000)}.${random(1e9)} '${path}'`);
      continue;
    }
    if (kind === "file" || kind === "large" || kind === "sparse") files.push(path);
    if (kind !== "fifo" && kind !== "device" && random(3) === 0)
      script.push(`setfattr -n user.test -v 'value ${random(1000)}' '${path}'`);
    const [mode, owner] = [random(0o10000) | (kind === "directory" ? 0o500 : 0o400), random(70_000)];
    const time = `@${random(2_000_000_000)}.${String(random(1e9)).padStart(9, "0")}`;
    // What is made in a directory changes it: the last is finished first.
    last.unshift(`chmod ${mode.toString(8)} '${path}'`, `touch -d ${time} '${path}'`);
    if (privileged && random(3) === 0) last.unshift(`chown ${owner}:${owner} '${path}'`);
  }
  execFileSync("sh", ["-e"], { input: [...script, ...last].join("\n") });
}

function makeSparse(path: string, random: (below: number) => number): void {
  const fd = openSync(path, "w");
  for (let piece = random(4); piece >= 0; piece--) writeSync(fd, "data".repeat(1000 + random(5000)), random(1000) * 4096);
  closeSync(fd);
  truncateSync(path, 5_000_000 + random(100_000));
}
