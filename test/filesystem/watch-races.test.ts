import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { libc } from "../../src/os/libc.js";
import { eventually } from "../helpers/eventually.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { inotifyWatches, Watched } from "../helpers/watched.js";

const RENAME_EXCHANGE = 2;
const AT_FDCWD = -100;

/** What somebody who was told all this believes to be there, relative. */
function replay(told: readonly string[], before: readonly string[] = []): string[] {
  const paths = new Set(before);
  const removeBelow = (path: string) => {
    for (const other of [...paths]) if (other === path || other.startsWith(`${path}/`)) paths.delete(other);
  };
  for (const line of told) {
    const [, kind, names = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    const [from = "", to = from] = names.split(" > ").map((name) => name.replace(/\/$/, ""));
    if (kind === "created") paths.add(from);
    if (kind === "removed") removeBelow(from);
    if (kind !== "moved") continue;
    const moved = [...paths].filter((path) => path === from || path.startsWith(`${from}/`));
    removeBelow(from);
    removeBelow(to);
    for (const path of moved) paths.add(to + path.slice(from.length));
  }
  return [...paths].toSorted();
}

const listing = (path: string) => (readdirSync(path, { recursive: true }) as string[]).toSorted();

function exchange(a: string, b: string): void {
  if (libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) !== 0) throw new Error("not exchanged");
}

/** A small generator of numbers: a failure can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

it.each([1, 2, 3, 4, 5, 6])("keeps up with a storm of renames, creations and removals (seed %i)", async (seed) => {
  using directory = temporaryDirectory();
  const { path } = directory;
  const below = random(seed);
  await using watched = await Watched.open(path, { recursive: true });
  const place = () => Array.from({ length: 1 + below(3) }, () => "abc"[below(3)]).join("/");
  for (let step = 0; step < 1500; step++) {
    const [from, to] = [`${path}/${place()}`, `${path}/${place()}`];
    const act = [
      () => mkdirSync(from, { recursive: true }),
      () => renameSync(from, to),
      () => renameSync(from, to),
      () => writeFileSync(from, ""),
      () => unlinkSync(from),
      () => rmdirSync(from),
      () => rmSync(from, { recursive: true }),
      () => exchange(from, to),
    ][below(8)];
    try {
      act?.();
    } catch {
      // Most of what it tries is impossible.
    }
    if (below(10) === 0) await nextTurn();
  }
  expect(replay(await watched.since())).toEqual(listing(path));
  // And every directory that is there is watched, once.
  const directories = execFileSync("find", [path, "-type", "d"], { encoding: "utf8" }).trim().split("\n");
  for (const name of directories) writeFileSync(`${name}/probe`, "");
  const probes = (await watched.since()).filter((line) => line.startsWith("created ")).toSorted();
  expect(probes).toEqual(directories.map((name) => `created ${`${name}/probe`.slice(path.length + 1)}`).toSorted());
  await eventually("no other is", () => inotifyWatches()[0] === directories.length);
});

it("knows what two exchanged directories are afterwards", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  for (const name of ["a", "b"]) mkdirSync(`${path}/${name}/of-${name}`, { recursive: true });
  await using watched = await Watched.open(path, { recursive: true });
  exchange(`${path}/a`, `${path}/b`);
  const before = ["a", "a/of-a", "b", "b/of-b"];
  expect(replay(await watched.since(), before)).toEqual(["a", "a/of-b", "b", "b/of-a"]);
  writeFileSync(`${path}/a/of-b/x`, "");
  writeFileSync(`${path}/b/of-a/y`, "");
  expect(await watched.since()).toEqual(["created a/of-b/x", "created b/of-a/y"]);
});

it("tells of a directory that is exchanged for a temporary one", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  const temporary = `${path}/.picod-0123456789abcdef.tmp`;
  mkdirSync(`${path}/d`);
  writeFileSync(`${path}/d/old`, "");
  await using watched = await Watched.open(path, { recursive: true });
  mkdirSync(temporary);
  writeFileSync(`${temporary}/new`, "");
  exchange(temporary, `${path}/d`);
  rmSync(temporary, { recursive: true });
  expect(replay(await watched.since(), ["d", "d/old"])).toEqual(["d", "d/new"]);
});

it("sees every file of a clone of 10,000 in nested new directories", { timeout: 300_000 }, async () => {
  // In memory, where there is some: it is not the disk that is tested.
  const base = mkdtempSync("/dev/shm/picod-test-");
  try {
    for (let d = 0; d < 250; d++) {
      const sub = `${base}/origin/${d % 10}/${d % 25}/${d}`;
      mkdirSync(sub, { recursive: true });
      for (let f = 0; f < 40; f++) writeFileSync(`${sub}/${f}`, `${d} ${f}`);
    }
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { stdio: "pipe" });
    git("init", "-q", `${base}/origin`);
    git("-C", `${base}/origin`, "add", ".");
    git("-C", `${base}/origin`, "commit", "-qm", "all");
    mkdirSync(`${base}/watched`);
    await using watched = await Watched.open(`${base}/watched`, { recursive: true });
    const clone = spawn("git", ["clone", "-q", "--no-local", `${base}/origin`, `${base}/watched/clone`], { stdio: "ignore" });
    expect(await once(clone, "exit")).toEqual([0, null]);
    const told = await watched.since();
    expect(told).not.toContain("overflow");
    const created = told.filter((line) => /^created clone\/\d/.test(line) && !line.endsWith("/"));
    expect(created.length).toBe(10_000);
    expect(replay(told)).toEqual(listing(`${base}/watched`));
  } finally {
    rmSync(base, { recursive: true });
  }
});
