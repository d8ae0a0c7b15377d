import { createHash } from "node:crypto";
import { createReadStream, statSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const GIB = 1024 ** 3;
const CHUNK = Buffer.alloc(1024 * 1024, "0123456789abcdef");
/** Far below what is transferred; the daemon's own code and the sockets' buffers are in it. */
const MAX_GROWTH_BYTES = 160 * 1024 * 1024;

/** The most memory that the daemon has held, as the kernel counts it. */
async function growthDuring(daemon: Daemon, work: () => Promise<void>): Promise<number> {
  const before = daemon.rss();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, daemon.rss());
  }, 20);
  await work();
  clearInterval(timer);
  return peak - before;
}

describe("bulk transfer", () => {
  it("takes an upload of a GiB in flat memory and stores every byte", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    async function* upload() {
      yield { request: { case: "metadata" as const, value: { path, size: BigInt(GIB) } } };
      for (let sent = 0; sent < GIB; sent += CHUNK.length) yield { request: { case: "chunk" as const, value: CHUNK } };
    }
    const growth = await growthDuring(daemon, async () => {
      const { bytesWritten } = await clients.filesystem.writeFile(upload());
      expect(bytesWritten).toBe(BigInt(GIB));
    });
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    expect(statSync(path).size).toBe(GIB);
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK.length })) hash.update(chunk);
    const expected = createHash("sha256");
    for (let sent = 0; sent < GIB; sent += CHUNK.length) expected.update(CHUNK);
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
  }, 120_000);

  it("sends a download of a GiB in flat memory", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "");
    truncateSync(`${directory.path}/file`, GIB);
    let received = 0;
    const growth = await growthDuring(daemon, async () => {
      for await (const { response } of clients.filesystem.readFile({ path: `${directory.path}/file` })) {
        if (response.case === "chunk") received += response.value.length;
      }
    });
    expect(received).toBe(GIB);
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
  }, 120_000);

  it("holds a download still while its reader does not read", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "");
    truncateSync(`${directory.path}/file`, GIB);
    const abort = new AbortController();
    const stream = clients.filesystem
      .readFile({ path: `${directory.path}/file` }, { signal: abort.signal })
      [Symbol.asyncIterator]();
    await stream.next();
    // Another call on the same connection gets its answer, and then the daemon has had time to run away.
    for (let call = 0; call < 50; call++) await clients.filesystem.stat({ path: "/" });
    expect(daemon.rss()).toBeLessThan(200 * 1024 * 1024);
    abort.abort();
    await expect(stream.next()).rejects.toThrow();
  });
});
