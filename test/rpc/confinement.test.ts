import { writeFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { resolvePath } from "../../src/acting-user.js";
import { PicodError } from "../../src/errors/picod-error.js";
import type { Access } from "../../src/filesystem/access.js";
import { copy } from "../../src/filesystem/copy.js";
import { find } from "../../src/filesystem/find.js";
import { listDirectory } from "../../src/filesystem/list-directory.js";
import { makeDirectory } from "../../src/filesystem/make-directory.js";
import { move } from "../../src/filesystem/move.js";
import { remove } from "../../src/filesystem/remove.js";
import { setAttributes } from "../../src/filesystem/set-attributes.js";
import { stat } from "../../src/filesystem/stat.js";
import { Root } from "../../src/os/root.js";
import { errnoName } from "../../src/os/system-error.js";
import { archiveOf, unpack } from "../helpers/archives.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { accessAs, accessGranted, readWhole, writeWhole } from "../helpers/file-access.js";
import { randomNumbers } from "../helpers/random-tree.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { adversarialPaths } from "./support/adversarial-paths.js";
import { Outside, SECRET } from "./support/outside.js";

/** `npm run test:races` takes longer. */
const RACE_MS = Number(process.env.PICOD_RACE_SECONDS ?? 4) * 1000;
const LOOKED_UP_PATHS = 100_000;
/** Between others' turns. */
const LOOKED_UP_AT_ONCE = 500;
const LOOK_UP_MS = 2 * RACE_MS;
const ROUND_MS = 700;
const LANES = 8;
const CALL_MS = 5000;
/** Should a path ever lead out, nobody can do little harm there. */
const USER = { name: "nobody", uid: 65534 };

const all = async (events: AsyncIterable<unknown>) => {
  const told: unknown[] = [];
  for await (const event of events) told.push(event);
  return told;
};

/** Fails when an answer tells anything of the canaries. */
function assertInside(answer: unknown, path: string): void {
  const text = JSON.stringify(answer, (_, value) => {
    if (typeof value === "bigint") return `${value}`;
    return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value;
  });
  expect(text ?? "", path).not.toMatch(new RegExp(`CANARY|canary-|"size":"?${SECRET.length}\\b|root:x:0`));
}

/** Calls with paths until the time is over, in several lanes; between rounds everything is furnished anew. Returns how often each ended how. */
async function race(outside: Outside, attempt: (path: string, other: string) => Promise<string>): Promise<Map<string, number>> {
  const next = adversarialPaths(7, outside.outside);
  const outcomes = new Map<string, number>();
  const until = performance.now() + RACE_MS;
  while (performance.now() < until) {
    const roundEnds = performance.now() + ROUND_MS;
    const lane = async () => {
      while (performance.now() < roundEnds) {
        const outcome = await attempt(next(), next());
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    outside.furnish();
  }
  return outcomes;
}

function assertUntouched(outside: Outside): void {
  const [before, now] = outside.compared();
  expect(now).toBe(before);
  expect(outside.secret).toBe(SECRET);
}

it("no path and nobody who swaps directories leads a look-up out of the root", async () => {
  using base = temporaryDirectory();
  const outside = new Outside(base.path, USER.uid);
  const access = accessAs(USER.name, outside.root);
  const next = adversarialPaths(6, outside.outside);
  await using _swapping = await outside.swapping();
  const until = performance.now() + LOOK_UP_MS;
  let found = 0;
  for (let looked = 0; looked < LOOKED_UP_PATHS && performance.now() < until; looked++) {
    if (looked % LOOKED_UP_AT_ONCE === 0) await nextTurn();
    const path = next();
    try {
      const entry = stat(access, resolvePath(path, access.user, "/", access.users), true);
      if (entry.size === BigInt(SECRET.length) || entry.path.includes("canary")) expect.fail(`${path} led to ${entry.path}`);
      found++;
    } catch (error) {
      if (!(error instanceof PicodError) && errnoName(error) === undefined) throw error;
    }
  }
  assertUntouched(outside);
  expect(found).toBeGreaterThan(100);
});

it.each(["the root", "a path prefix", "a policy"])(
  "no path and nobody who swaps directories leads an operation out of %s",
  async (what) => {
    using base = temporaryDirectory();
    const outside = new Outside(base.path, USER.uid);
    const [access, above] = confinedBy(what, outside.root);
    const never = new AbortController().signal;
    const { archive } = await archiveOf(access, `${above}/listing`);
    const anything = {
      kinds: [],
      minSize: undefined,
      maxSize: undefined,
      modifiedSinceNs: undefined,
      modifiedBeforeNs: undefined,
    };
    const options = { patterns: { include: [], exclude: [] }, ...anything, maxDepth: 9, maxResults: 99 };
    const operations: ((path: string, other: string) => unknown)[] = [
      (path) => stat(access, path, true),
      async (path) => (await readWhole(access, path)).content,
      (path) => writeWhole(access, path, "written"),
      (path) => writeWhole(access, path, "patched", { offset: 0n }),
      (path) => all(listDirectory(access, path, 2, never)),
      (path) => makeDirectory(access, path),
      (path, other) => move(access, path, other, "replace", never),
      (path, other) => move(access, path, other, "exchange", never),
      (path, other) => copy(access, path, other, {}, never),
      (path) => remove(access, path, { recursive: true }, never),
      (path) => setAttributes(access, path, { mode: 0o755, modifiedTimeNs: 1n }),
      (path) => all(find(access, path, options, never)),
      async (path) => (await archiveOf(access, path)).archive,
      (path) => unpack(access, path, archive),
      (path) => unpack(access, path, archive, { atomic: true }),
    ];
    const random = randomNumbers(8);
    const resolved = (path: string) => resolvePath(above + path, access.user, "/", access.users);
    await using _swapping = await outside.swapping();
    const outcomes = await race(outside, async (path, other) => {
      const operation = operations[random(operations.length)] as (typeof operations)[number];
      try {
        assertInside(await operation(resolved(path), resolved(other)), `${operation} of ${path}`);
        return "done";
      } catch (error) {
        if (error instanceof PicodError) return error.reason;
        const errno = errnoName(error);
        if (errno === undefined) throw error;
        return errno;
      }
    });
    assertUntouched(outside);
    expect(outcomes.get("done"), JSON.stringify([...outcomes])).toBeGreaterThan(50);
  },
);

/** And the path of what it is confined to. */
function confinedBy(what: string, directory: string): [Access, string] {
  if (what === "the root") return [accessAs(USER.name, directory), ""];
  const whole = accessAs(USER.name);
  const paths = [`${directory}/**`];
  if (what === "a policy") return [accessGranted({ readPaths: paths, writePaths: paths }, USER.name), directory];
  return [{ ...whole, root: new Root(whole.root, [directory]) }, directory];
}

async function* unpacking(path: string, archive: Uint8Array<ArrayBuffer>, atomic: boolean) {
  yield { request: { case: "metadata" as const, value: { path, atomic } } };
  yield { request: { case: "chunk" as const, value: archive } };
}

function rpcs({ filesystem }: Clients, archive: Uint8Array<ArrayBuffer>): ((path: string, other: string) => Promise<unknown>)[] {
  // A call in a tree that never rests may take its time.
  const soon = { timeoutMs: CALL_MS };
  return [
    (path) => filesystem.stat({ path }, soon),
    (path) => all(filesystem.readFile({ path }, soon)),
    (path) => all(filesystem.listDirectory({ path, depth: 2 }, soon)),
    (path) => filesystem.makeDirectory({ path }, soon),
    (source, destination) => filesystem.move({ source, destination }, soon),
    (source, destination) => filesystem.copy({ source, destination }, soon),
    (path) => filesystem.remove({ path, recursive: true }, soon),
    (path) => filesystem.setAttributes({ path, mode: 0o755 }, soon),
    (path) => all(filesystem.find({ path }, soon)),
    (path) => all(filesystem.search({ path, pattern: "CANARY" }, soon)),
    (path) => all(filesystem.readArchive({ path }, soon)),
    (path) => filesystem.writeArchive(unpacking(path, archive, false), soon),
    (path) => filesystem.writeArchive(unpacking(path, archive, true), soon),
  ];
}

/** Whose path is in the address itself, percent-encoded so that nobody on the way takes dots out. */
function requests({ url }: Daemon): ((path: string) => Promise<unknown>)[] {
  const address = (path: string) => `${url}/v1/files/${encodeURIComponent(path).replaceAll(".", "%2E")}`;
  const send = (method: string, body?: string) => async (path: string) => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await fetch(address(path), { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    expect(response.status, `${method} of ${path}: ${text}`).not.toBe(500);
    expect(response.headers.get("content-length")).not.toBe(`${SECRET.length}`);
    return response.ok ? text : undefined;
  };
  return [send("GET"), send("GET"), send("HEAD"), send("PUT", "written"), send("DELETE")];
}

/** Of a policy test/policy has more over the wire; `npm run test:races` races that, too. */
const CONFINED_DAEMONS = process.env.PICOD_RACE_SECONDS === undefined ? ["the root"] : ["the root", "a policy"];

it.each(CONFINED_DAEMONS)("no path and nobody who swaps directories leads a call out of %s", async (what) => {
  using base = temporaryDirectory();
  const outside = new Outside(base.path, USER.uid);
  const { archive } = await archiveOf(accessAs(USER.name, outside.root), "/listing");
  const isPolicy = what === "a policy";
  using directory = temporaryDirectory();
  const policy = `${directory.path}/policy.toml`;
  const globs = `[${JSON.stringify(`${outside.root}/**`)}]`;
  writeFileSync(
    policy,
    `daemon_token = "x"\n[capabilities.x.permissions.filesystem]\nread_paths = ${globs}\nwrite_paths = ${globs}\n`,
  );
  const confined = isPolicy ? ["--policy", policy] : ["--root", outside.root];
  await using daemon = await startDaemon({ args: [...confined, "--user", USER.name] });
  const above = isPolicy ? outside.root : "";
  await using clients = connectTo(daemon.url);
  const calls = [...rpcs(clients, new Uint8Array(archive)), ...requests(daemon)];
  const random = randomNumbers(9);
  {
    await using _swapping = await outside.swapping();
    const outcomes = await race(outside, async (path, other) => {
      const call = calls[random(calls.length)] as (typeof calls)[number];
      try {
        assertInside(await call(above + path, above + other), `${call} of ${path}`);
        return "done";
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        expect([Code.Internal, Code.Unknown], `${call} of ${path}: ${error.message}`).not.toContain(error.code);
        return Code[error.code];
      }
    });
    expect(outcomes.get("done"), JSON.stringify([...outcomes])).toBeGreaterThan(20);
  }
  assertUntouched(outside);
});
