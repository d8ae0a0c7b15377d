import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { createClient } from "./built-client.js";
import { SwitchedProxy } from "./switched-proxy.js";

const SIZE = 40_000_000;

/** Calls back once each time that so many more bytes are through. */
function every(step: number, times: number, call: () => void) {
  let done = 0;
  return ({ bytes }: { bytes: number }) => {
    if (done === times || bytes < (done + 1) * step) return;
    done++;
    call();
  };
}

/** Kills the daemon and starts another on its port. */
async function replaced(daemon: Daemon): Promise<Daemon> {
  await daemon.stop("SIGKILL");
  return startDaemon({ args: ["--port", String(daemon.port)] });
}

function files(directory: { readonly path: string }) {
  const [near, far] = [`${directory.path}/near`, `${directory.path}/far`];
  const content = randomBytes(SIZE);
  return { near, far, content, isWhole: (path: string) => readFileSync(path).equals(content) };
}

const codeOf = (call: Promise<unknown>) => call.then(String, (error) => error.code ?? String(error));

describe("an upload", () => {
  it.each([1, 3])("goes on where the connection was cut, with %i parts at a time", async (parallel) => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content, isWhole } = files(directory);
    writeFileSync(near, content);
    const told: number[] = [];
    const cut = every(8_000_000, 4, () => proxy.cut());
    const onProgress = (progress: { bytes: number; total: number }) => {
      told.push(progress.bytes);
      expect(progress.total).toBe(SIZE);
      cut(progress);
    };
    const entry = await client.upload(near, far, { mode: 0o640, parallel, onProgress });
    expect(entry).toMatchObject({ size: BigInt(SIZE), mode: 0o640, path: far });
    expect(isWhole(far)).toBe(true);
    expect(proxy.cuts).toBe(4);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBe(SIZE);
    // Most of what had arrived did not go over again.
    expect(proxy.sent).toBeLessThan(SIZE * 1.7);
  });

  it("begins anew with a daemon that was restarted on the same port", async () => {
    const first = await startDaemon();
    using client = createClient({ url: first.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content, isWhole } = files(directory);
    writeFileSync(near, content);
    let second: Promise<Daemon> | undefined;
    const onProgress = every(20_000_000, 1, () => {
      second = replaced(first);
    });
    await client.upload(near, far, { onProgress });
    await using _ = (await second) as Daemon;
    expect(isWhole(far)).toBe(true);
  });

  it("that is cancelled leaves nothing, and the old file as it was", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content } = files(directory);
    writeFileSync(near, content);
    writeFileSync(far, "old");
    const leave = new AbortController();
    const onProgress = every(10_000_000, 1, () => leave.abort());
    expect(await codeOf(client.upload(near, far, { onProgress, signal: leave.signal }))).toBe(Code.Canceled);
    await eventually("nothing is pending", async () => (await client.filesystem.listUploads({})).uploads.length === 0);
    expect(readFileSync(far, "utf8")).toBe("old");
    expect(readdirSync(directory.path)).toEqual(["far", "near"]);
  });

  it("keeps its precondition, and says what is wrong with the local file", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far] = [`${directory.path}/near`, `${directory.path}/far`];
    writeFileSync(near, "");
    const precondition = { condition: { case: "mustNotExist", value: true } } as const;
    expect(await client.upload(near, far, { precondition })).toMatchObject({ size: 0n });
    expect(await codeOf(client.upload(near, far, { precondition }))).toBe(Code.AlreadyExists);
    expect((await client.filesystem.listUploads({})).uploads).toEqual([]);
    expect(await codeOf(client.upload(`${near}/no`, far))).toBe("ENOTDIR");
    expect(await codeOf(client.upload(directory.path, far))).toBe("EISDIR");
  });
});

describe("a download", () => {
  it("goes on where the connection was cut", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content, isWhole } = files(directory);
    writeFileSync(far, content);
    const told: number[] = [];
    const cut = every(9_000_000, 4, () => proxy.cut());
    const onProgress = (progress: { bytes: number; total: number }) => {
      told.push(progress.bytes);
      cut(progress);
    };
    expect(await client.download(far, near, { onProgress })).toMatchObject({ size: BigInt(SIZE) });
    expect(isWhole(near)).toBe(true);
    expect(proxy.cuts).toBe(4);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBe(SIZE);
    expect(readdirSync(directory.path)).toEqual(["far", "near"]);
  });

  it("goes on with a daemon that was restarted on the same port", async () => {
    const first = await startDaemon();
    using client = createClient({ url: first.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content, isWhole } = files(directory);
    writeFileSync(far, content);
    let second: Promise<Daemon> | undefined;
    const onProgress = every(20_000_000, 1, () => {
      second = replaced(first);
    });
    await client.download(far, near, { onProgress });
    await using _ = (await second) as Daemon;
    expect(isWhole(near)).toBe(true);
  });

  it("begins anew when the file becomes another one, shorter or longer", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content } = files(directory);
    for (const other of [randomBytes(18_000_000), randomBytes(50_000_000)]) {
      writeFileSync(far, content);
      await client.download(far, near, { onProgress: every(17_000_000, 1, () => writeFileSync(far, other)) });
      expect(readFileSync(near).equals(other)).toBe(true);
    }
  });

  it.each([8_000_000, SIZE])("is not of two versions of a file of %i bytes that is written meanwhile", async (size) => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far } = files(directory);
    const [old, other] = [Buffer.alloc(size, "a"), Buffer.alloc(size, "b")];
    writeFileSync(far, old);
    const onProgress = every(size / 4, 1, () => writeFileSync(far, other, { flag: "r+" }));
    await client.download(far, near, { onProgress });
    expect(readFileSync(near).equals(other)).toBe(true);
  });

  it("takes a log that is written all the time as it is", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far, content } = files(directory);
    writeFileSync(far, content);
    await client.download(far, near, { onProgress: () => appendFileSync(far, "a line\n") });
    const [copy, log] = [readFileSync(near), readFileSync(far)];
    expect(copy.length).toBeGreaterThan(SIZE);
    expect(copy.equals(log.subarray(0, copy.length))).toBe(true);
  });

  it("takes files that are empty or do not know their size", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/empty`, "");
    await client.download(`${directory.path}/empty`, `${directory.path}/copy`);
    expect(statSync(`${directory.path}/copy`).size).toBe(0);
    await client.download("/proc/version", `${directory.path}/version`);
    expect(readFileSync(`${directory.path}/version`, "utf8")).toBe(readFileSync("/proc/version", "utf8"));
  });

  it("leaves nothing when it is cancelled or fails, and the old file as it was", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const { near, far } = files(directory);
    writeFileSync(far, "");
    truncateSync(far, 500_000_000);
    writeFileSync(near, "old");
    const leave = new AbortController();
    const onProgress = every(10_000_000, 1, () => leave.abort());
    expect(await codeOf(client.download(far, near, { onProgress, signal: leave.signal }))).toBe(Code.Canceled);
    expect(await codeOf(client.download("/no/such", near))).toBe(Code.NotFound);
    expect(await codeOf(client.download(far, `${directory.path}/no/such`))).toBe("ENOENT");
    expect(readFileSync(near, "utf8")).toBe("old");
    expect(readdirSync(directory.path)).toEqual(["far", "near"]);
    expect(existsSync(`${directory.path}/no`)).toBe(false);
  });
});
