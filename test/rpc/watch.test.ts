import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, renameSync, rmdirSync, unlinkSync, writeFileSync } from "node:fs";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { FileChangeKind, type WatchDirectoryResponse } from "../../src/gen/picod/v1/filesystem_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { inotifyWatches } from "../helpers/watched.js";

type Event = WatchDirectoryResponse["event"];

/** Collects the events of a call, which goes on until `stop`. */
class Follower implements AsyncDisposable {
  readonly events: Event[] = [];
  error: ConnectError | undefined;
  readonly #cancel = new AbortController();
  readonly #done: Promise<void>;

  constructor(start: (signal: AbortSignal) => AsyncIterable<WatchDirectoryResponse>) {
    this.#done = this.#collect(start(this.#cancel.signal));
  }

  get cases(): (string | undefined)[] {
    return this.events.map((event) => event.case);
  }

  paths(kind: FileChangeKind): string[] {
    return this.events.flatMap((event) => (event.case === "change" && event.value.kind === kind ? [event.value.path] : []));
  }

  async has(kind: Event["case"]): Promise<void> {
    await eventually(`${kind} arrives`, () => {
      if (this.error !== undefined) throw this.error;
      return this.cases.includes(kind);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel.abort();
    await this.#done;
  }

  async #collect(messages: AsyncIterable<WatchDirectoryResponse>): Promise<void> {
    try {
      for await (const { event } of messages) this.events.push(event);
    } catch (error) {
      this.error = ConnectError.from(error);
    }
  }
}

const errorOf = async (call: Promise<unknown>) => ConnectError.from(await call.catch((error: unknown) => error));

describe("WatchDirectory", () => {
  it("tells when it is ready, what changes, that it lives, and the end", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/root`;
    mkdirSync(`${path}/sub`, { recursive: true });
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const request = { path, options: { recursive: true }, keepaliveInterval: { seconds: 1n } };
    await using follower = new Follower((signal) => clients.filesystem.watchDirectory(request, { signal }));
    await follower.has("ready");
    expect(follower.events[0]).toMatchObject({ value: { directories: 2 } });
    const before = Date.now();
    writeFileSync(`${path}/sub/file`, "");
    renameSync(`${path}/sub/file`, `${path}/sub/moved`);
    await follower.has("keepalive");
    const [created, moved] = follower.events.flatMap((event) => (event.case === "change" ? [event.value] : []));
    expect(created).toMatchObject({ kind: FileChangeKind.CREATED, path: `${path}/sub/file`, fromPath: "", isDirectory: false });
    expect(moved).toMatchObject({ kind: FileChangeKind.MOVED, path: `${path}/sub/moved`, fromPath: `${path}/sub/file` });
    const seenAt = created?.time === undefined ? 0 : timestampMs(created.time);
    expect([seenAt >= before - 1000, seenAt <= Date.now()]).toEqual([true, true]);
    unlinkSync(`${path}/sub/moved`);
    rmdirSync(`${path}/sub`);
    rmdirSync(path);
    await follower.has("ended");
    expect(follower.events.at(-1)).toMatchObject({ value: { message: `${path} is watched no longer: it was removed` } });
    expect(follower.paths(FileChangeKind.REMOVED)).toEqual([`${path}/sub/moved`, `${path}/sub`]);
    await eventually("nothing is watched", () => inotifyWatches(daemon.pid).length === 0);
  });

  it("says that changes were lost when they come faster than the daemon reads, and misses nothing after that", {
    timeout: 120_000,
  }, async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    // The rest fills the kernel's queue.
    const options = { recursive: true, kinds: [FileChangeKind.CREATED] };
    const watch = (signal: AbortSignal) => clients.filesystem.watchDirectory({ path, options }, { signal });
    await using follower = new Follower(watch);
    await using other = new Follower(watch);
    await Promise.all([follower.has("ready"), other.has("ready")]);
    daemon.child.kill("SIGSTOP");
    writeFileSync(`${path}/a`, "");
    for (let round = 0; round < 9_000; round++) {
      renameSync(`${path}/a`, `${path}/b`);
      renameSync(`${path}/b`, `${path}/a`);
    }
    mkdirSync(`${path}/new/deep`, { recursive: true });
    daemon.child.kill("SIGCONT");
    await Promise.all([follower.has("overflow"), other.has("overflow")]);
    expect(follower.paths(FileChangeKind.CREATED)).not.toContain(`${path}/new`);
    writeFileSync(`${path}/new/deep/file`, "");
    const isTold = () => follower.paths(FileChangeKind.CREATED).includes(`${path}/new/deep/file`);
    await eventually("what happens in a new directory is told", isTold);
    expect(inotifyWatches(daemon.pid)).toEqual([3]);
  });

  it("names the limit when the kernel has no watches left, for the directory itself and for those below", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    for (let number = 0; number < 20; number++) mkdirSync(`${path}/${String(number).padStart(2, "0")}`);
    // In a user namespace the limit is its own.
    const limited = (sysctl: string, limit: number) => {
      const script = `echo ${limit} > /proc/sys/user/${sysctl} && exec "$@"`;
      return startDaemon({ wrapper: ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"] });
    };
    const watchIn = async (daemon: Awaited<ReturnType<typeof limited>>) => {
      await using clients = connectTo(daemon.url);
      const cancel = new AbortController();
      const events: Event[] = [];
      const request = { path, options: { recursive: true }, keepaliveInterval: { seconds: 1n } };
      for await (const { event } of clients.filesystem.watchDirectory(request, { signal: cancel.signal })) {
        if (event.case === "keepalive") break;
        events.push(event);
      }
      cancel.abort();
      return events;
    };
    {
      await using daemon = await limited("max_inotify_watches", 11);
      const [ready, ...unwatched] = await watchIn(daemon);
      // One of them is the daemon's own.
      expect(ready).toMatchObject({ case: "ready", value: { directories: 10 } });
      expect(unwatched.length).toBe(11);
      const why = `cannot watch ${path}/09: no inotify watches are left: raise user.max_inotify_watches (now 11)`;
      expect(unwatched[0]).toMatchObject({ case: "unwatched", value: { path: `${path}/09`, reason: "ENOSPC", message: why } });
      await eventually("nothing is watched", () => inotifyWatches(daemon.pid).length === 0);
      await using clients = connectTo(daemon.url);
      const polled = await errorOf(clients.filesystem.getChanges({ path, options: { recursive: true } }));
      expect(polled).toMatchObject({ code: Code.ResourceExhausted, rawMessage: why });
      await expect(clients.filesystem.getChanges({ path })).resolves.toMatchObject({ historyLost: false });
    }
    for (const [sysctl, limit] of [
      ["max_inotify_watches", 1],
      ["max_inotify_instances", 0],
    ] as const) {
      await using daemon = await limited(sysctl, limit);
      const error = await errorOf(watchIn(daemon));
      expect(error.code).toBe(Code.ResourceExhausted);
      expect(error.rawMessage).toMatch(new RegExp(`^cannot watch ${path}: .* raise user.${sysctl} \\(now ${limit}\\)$`));
      await eventually("nothing is open", () => inotifyWatches(daemon.pid).length === 0);
    }
  });

  it("stops watching for a client that was killed", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon();
    const url = `${daemon.url}/picod.v1.FilesystemService/WatchDirectory`;
    const body = Buffer.from(JSON.stringify({ path }));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    writeFileSync(`${path}/request`, Buffer.concat([head, body]));
    const headers = ["-H", `authorization: Bearer ${TOKEN}`, "-H", "content-type: application/connect+json"];
    const client = spawn("curl", ["-sN", "--data-binary", `@${path}/request`, ...headers, url], { stdio: "ignore" });
    await eventually("it is watched", () => inotifyWatches(daemon.pid)[0] === 1);
    client.kill("SIGKILL");
    await once(client, "exit");
    await eventually("it is not", () => inotifyWatches(daemon.pid).length === 0);
  });

  it.each([
    ["include", { include: ["[a"] }],
    ["debounce", { debounce: { seconds: 11n } }],
    ["debounce", { debounce: { seconds: -1n } }],
    ["kinds", { kinds: [77 as FileChangeKind] }],
  ])("refuses an invalid %s", async (field, options) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const error = await errorOf(clients.filesystem.getChanges({ path: "/", options }));
    expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, expect.stringContaining(`invalid ${field}`)]);
    expect(inotifyWatches(daemon.pid)).toEqual([]);
  });
});

describe("GetChanges", () => {
  it("answers with what came since the cursor, as often as it is asked", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const ask = (cursor: string) => clients.filesystem.getChanges({ path, cursor, options: { recursive: true } });
    const begin = await ask("");
    expect(begin).toMatchObject({ changes: [], historyLost: false, more: false });
    for (let number = 0; number < 1500; number++) writeFileSync(`${path}/${number}`, "");
    const first = await ask(begin.cursor);
    expect(first.changes.map((change) => change.path)).toEqual(Array.from({ length: 1000 }, (_, number) => `${path}/${number}`));
    expect([first.more, first.historyLost]).toEqual([true, false]);
    expect(await ask(begin.cursor)).toEqual(first);
    const second = await ask(first.cursor);
    expect([second.changes.length, second.more]).toEqual([500, false]);
    mkdirSync(`${path}/a/b/c`, { recursive: true });
    const third = await ask(second.cursor);
    expect(third.changes.map((change) => change.path)).toEqual([`${path}/a`, `${path}/a/b`, `${path}/a/b/c`]);
    expect(await ask(third.cursor)).toEqual({ ...third, changes: [] });
    // Whoever begins the same anew shares the watch.
    expect(await ask("")).toEqual({ ...third, changes: [] });
  });

  it("waits for a change, and no longer than asked or than the daemon runs", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "60s"] });
    await using clients = connectTo(daemon.url);
    const { cursor } = await clients.filesystem.getChanges({ path });
    const wait = { seconds: 30n };
    const waiting = clients.filesystem.getChanges({ path, cursor, wait });
    await clients.filesystem.getChanges({ path, cursor });
    writeFileSync(`${path}/file`, "");
    const { changes, cursor: next } = await waiting;
    expect(changes.map((change) => change.path)).toEqual([`${path}/file`]);
    const none = await clients.filesystem.getChanges({ path, cursor: next, wait: { nanos: 50_000_000 } });
    expect(none).toMatchObject({ changes: [], cursor: next });
    const cut = errorOf(clients.filesystem.getChanges({ path, cursor: next, wait }));
    await clients.filesystem.getChanges({ path, cursor: next });
    expect(await daemon.stop()).toBe(0);
    expect((await cut).code).toBe(Code.Unavailable);
  });

  it("says that the history is lost when it is too long ago, or of another daemon", { timeout: 120_000 }, async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    let cursor: string;
    {
      await using daemon = await startDaemon();
      await using clients = connectTo(daemon.url);
      const begin = await clients.filesystem.getChanges({ path });
      writeFileSync(`${path}/a`, "");
      const early = await clients.filesystem.getChanges({ path, cursor: begin.cursor });
      for (let round = 0; round < 5000; round++) {
        renameSync(`${path}/a`, `${path}/b`);
        renameSync(`${path}/b`, `${path}/a`);
        if (round % 500 === 0) await clients.filesystem.getChanges({ path, cursor: early.cursor });
      }
      const kept = await clients.filesystem.getChanges({ path, cursor: early.cursor });
      expect([kept.historyLost, kept.changes.length, kept.more]).toEqual([false, 1000, true]);
      const lost = await clients.filesystem.getChanges({ path, cursor: begin.cursor });
      expect(lost).toMatchObject({ historyLost: true, changes: [], more: false });
      ({ cursor } = lost);
      unlinkSync(`${path}/a`);
      const { changes } = await clients.filesystem.getChanges({ path, cursor });
      expect(changes.map((change) => change.kind)).toEqual([FileChangeKind.REMOVED]);
    }
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const anew = await clients.filesystem.getChanges({ path, cursor });
    expect(anew).toMatchObject({ historyLost: true, changes: [] });
    expect(anew.cursor).not.toBe(cursor);
  });

  it("refuses cursors that are malformed or of something else", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { cursor } = await clients.filesystem.getChanges({ path });
    const codeOf = async (more: object) => (await errorOf(clients.filesystem.getChanges({ path, cursor, ...more }))).code;
    expect(await codeOf({ cursor: "nonsense" })).toBe(Code.InvalidArgument);
    expect(await codeOf({ cursor: cursor.replace(/\d+$/, "999") })).toBe(Code.InvalidArgument);
    expect(await codeOf({ path: "/" })).toBe(Code.InvalidArgument);
    expect(await codeOf({ user: "nobody" })).toBe(Code.InvalidArgument);
    expect(await codeOf({ options: { recursive: true } })).toBe(Code.InvalidArgument);
    expect(await codeOf({ wait: { seconds: 31n } })).toBe(Code.InvalidArgument);
  });

  it("tells the last changes of a directory that has gone, then NOT_FOUND, and begins afresh when there is one again", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/root`;
    mkdirSync(`${path}/sub`, { recursive: true });
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const begin = await clients.filesystem.getChanges({ path });
    rmdirSync(`${path}/sub`);
    rmdirSync(path);
    const last = await clients.filesystem.getChanges({ path, cursor: begin.cursor });
    expect(last.changes.map((change) => change.kind)).toEqual([FileChangeKind.REMOVED]);
    expect((await errorOf(clients.filesystem.getChanges({ path, cursor: last.cursor }))).code).toBe(Code.NotFound);
    mkdirSync(path);
    await expect(clients.filesystem.getChanges({ path, cursor: last.cursor })).resolves.toMatchObject({ historyLost: true });
  });

  it("keeps so many watches for clients that poll, and no more", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    for (let number = 0; number < 64; number++) {
      mkdirSync(`${directory.path}/${number}`);
      await clients.filesystem.getChanges({ path: `${directory.path}/${number}` });
    }
    const error = await errorOf(clients.filesystem.getChanges({ path: directory.path }));
    expect([error.code, error.rawMessage]).toEqual([Code.ResourceExhausted, expect.stringContaining("64 directories")]);
    await expect(clients.filesystem.getChanges({ path: `${directory.path}/7` })).resolves.toMatchObject({ changes: [] });
    expect(inotifyWatches(daemon.pid)).toEqual([64]);
  });
});
