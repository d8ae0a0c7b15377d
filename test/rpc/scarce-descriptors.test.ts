import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { treeOf } from "../helpers/archives.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { openDescriptors } from "../helpers/open-descriptors.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { selectId, startAndLeave } from "./support/processes.js";

/** More than any of the calls needs. */
const ENOUGH = 18;
/** What undoes a thing tries longer than that when it gets no descriptor. */
const PROMPTLY_MS = 3000;

async function drain<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) all.push(message);
  return all;
}

type Call = (clients: Clients, tree: string, to: string) => Promise<unknown>;
const CALLS: [name: string, leaves: "nothing" | "visible", call: Call][] = [
  ["copy", "nothing", ({ filesystem }, tree, to) => filesystem.copy({ source: tree, destination: `${to}/new/copy` })],
  ["merge", "visible", ({ filesystem }, tree, to) => filesystem.copy({ source: tree, destination: to })],
  ["move", "nothing", ({ filesystem }, tree, to) => filesystem.move({ source: tree, destination: `${to}/new/moved` })],
  [
    "unpack",
    "visible",
    ({ filesystem }, tree, to) => filesystem.writeArchive(unpacking(`${to}/new/sub`, false, archiveOf(tree))),
  ],
  [
    "unpack at once",
    "nothing",
    ({ filesystem }, tree, to) => filesystem.writeArchive(unpacking(`${to}/new/sub`, true, archiveOf(tree))),
  ],
  ["list", "nothing", ({ filesystem }, tree) => drain(filesystem.listDirectory({ path: tree, depth: 9 }))],
  ["find", "nothing", ({ filesystem }, tree) => drain(filesystem.find({ path: tree }))],
  ["search", "nothing", ({ filesystem }, tree) => drain(filesystem.search({ path: tree, pattern: "x" }))],
  ["archive", "nothing", ({ filesystem }, tree) => drain(filesystem.readArchive({ path: tree }))],
];

it.each(CALLS)("a call that gets too few descriptors says so and leaves nothing: %s", async (_name, leaves, call) => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using source = temporaryDirectory();
  using other = mountedTmpfs();
  const tree = `${source.path}/tree`;
  let refused = 0;
  let done = false;
  // Not before: the connection takes one for good.
  await clients.filesystem.stat({ path: "/" });
  for (let spare = 0; spare <= ENOUGH && !done; spare++) {
    makeTree(tree);
    const before = treeOf(tree);
    limit(daemon, spare);
    const startedAt = performance.now();
    const error = await call(clients, tree, other.path).then(() => undefined, ConnectError.from);
    done = error === undefined;
    if (error !== undefined) {
      refused++;
      expect(error.code, `${spare}: ${error.message}`).toBe(Code.ResourceExhausted);
      expect(error.rawMessage).toMatch(/\/.*: too many open files/);
      expect(performance.now() - startedAt).toBeLessThan(PROMPTLY_MS);
      const left = readdirSync(other.path, { recursive: true, encoding: "utf8" });
      expect(leaves === "nothing" ? left : left.filter((name) => name.includes(".picod-")), `${spare}`).toEqual([]);
      expect(treeOf(tree)).toEqual(before);
    }
    limit(daemon, 1000);
    for (const name of readdirSync(other.path)) rmSync(`${other.path}/${name}`, { recursive: true });
  }
  expect(done && refused > 0).toBe(true);
});

it("what is deep is undone with no descriptors but those of the call's own reserve", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using source = temporaryDirectory();
  using to = temporaryDirectory();
  for (const name of ["deep/".repeat(30), "after"]) mkdirSync(`${source.path}/${name}`, { recursive: true });
  writeFileSync(`${source.path}/${"deep/".repeat(30)}file`, "x".repeat(100_000));
  for (const name of ["deep", "after"]) writeFileSync(`${source.path}/${name}/last`, "x");
  const archive = archiveOf(source.path, "deep", "after");
  // Behind the deep file two others come, with a directory, and the end of the archive.
  const half = archive.subarray(0, archive.length - 7 * 512);
  const until = async () => {
    await eventually("all but the last of it is there", () => readdirSync(to.path, { recursive: true }).length > 31);
    // What the unpacking opened on its way down, and gives up on its way back, is of no use from now on.
    const below = openDescriptors(daemon.pid).filter(({ target }) => target.includes("/deep"));
    setLimit(daemon, Math.min(...below.map(({ fd }) => fd)));
  };
  const call = clients.filesystem.writeArchive(unpacking(`${to.path}/new`, true, half, until, archive.subarray(half.length)));
  const error = await call.then(() => expect.unreachable(), ConnectError.from);
  expect(error.message).toMatch(/too many open files/);
  expect(readdirSync(to.path, { recursive: true })).toEqual([]);
  limit(daemon, 1000);
});

it("processes are ended without a descriptor to look for them, and what hides as soon as there is one", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  const id = await startAndLeave(clients, { command: "setsid sleep 1000.1875 & exec sleep 1000.3125" });
  await eventually("both run", () => processesNamed("1000.1875").length + processesNamed("1000.3125").length === 2);
  limit(daemon, 0);
  const stopped = clients.process.stopProcess(selectId(id));
  await eventually("the group has gone", () => processesNamed("1000.3125").length === 0);
  expect(processesNamed("1000.1875")).toHaveLength(1);
  limit(daemon, 1000);
  expect(await stopped).toMatchObject({ process: { outcome: { survivingProcesses: 0 } } });
  expect(processesNamed("1000.1875")).toEqual([]);
});

function makeTree(tree: string): void {
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(`${tree}/sub/deep/deeper`, { recursive: true });
  for (const directory of [".", "sub", "sub/deep", "sub/deep/deeper"]) writeFileSync(`${tree}/${directory}/file`, "x\n");
}

function archiveOf(directory: string, ...names: string[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(execFileSync("tar", ["-c", "-b1", "-C", directory, "--", ...(names.length > 0 ? names : ["."])]));
}

async function* unpacking(path: string, atomic: boolean, ...parts: (Uint8Array<ArrayBuffer> | (() => Promise<void>))[]) {
  yield { request: { case: "metadata" as const, value: { path, atomic } } };
  for (const part of parts) {
    if (typeof part === "function") await part();
    else yield { request: { case: "chunk" as const, value: part } };
  }
}

/** Leaves the daemon so many more descriptors than it has: those numbers that are free below the limit. */
function limit(daemon: Daemon, spare: number): void {
  const open = new Set(readdirSync(`/proc/${daemon.pid}/fd`).map(Number));
  let [limit, free] = [0, 0];
  for (; free < spare || open.has(limit); limit++) if (!open.has(limit)) free++;
  setLimit(daemon, limit);
}

function setLimit({ pid }: Daemon, limit: number): void {
  execFileSync("prlimit", [`--pid=${pid}`, `--nofile=${limit}:`]);
}
