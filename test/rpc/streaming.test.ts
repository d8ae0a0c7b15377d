import { readdirSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { FOLLOWING_RPCS } from "../../src/api/routes.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { openFilesIn } from "./support/open-files.js";
import { STREAMING_RPCS, type StreamingRpc } from "./support/streaming-cases.js";

const CASES = STREAMING_RPCS.flatMap((rpc) => rpc.protocols.map((protocol) => ({ ...rpc, protocol })));
/** Those that hold the file open that they are about. */
const touchesFiles = ({ procedure }: StreamingRpc) =>
  procedure.startsWith("/picod.v1.FilesystemService") && !FOLLOWING_RPCS.has(procedure);

async function codeOf(call: Promise<unknown>): Promise<string> {
  return (
    Code[
      ConnectError.from(
        await call.then(
          () => new Error("no error"),
          (reason: unknown) => reason,
        ),
      ).code
    ] ?? ""
  );
}

// Each has a daemon of its own, and waits most of the time.
describe.each(CASES)("$procedure over $protocol", (rpc) => {
  const { procedure, protocol } = rpc;

  it.concurrent("succeeds, and fails with its code before the first message and after it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    await rpc.succeed(clients, directory.path);
    expect(await codeOf(rpc.failFirst.run(clients, directory.path))).toBe(Code[rpc.failFirst.code]);
    expect(await codeOf(rpc.failLater.run(clients, directory.path))).toBe(Code[rpc.failLater.code]);
    await eventually("every file is closed", () => openFilesIn(daemon, directory.path).length === 0);
    await rpc.succeed(clients, directory.path);
  });

  it.concurrent("ends when the caller cancels", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const cancel = new AbortController();
    const running = rpc.start(clients, directory.path, cancel.signal);
    const ended = codeOf(running.rest);
    await running.first;
    if (touchesFiles(rpc)) await eventually("the file is open", () => openFilesIn(daemon, directory.path).length > 0);
    cancel.abort();
    expect(await ended).toBe("Canceled");
    await daemon.waitForLog((line) => line.procedure === procedure && line.code === "canceled");
    await eventually("every file is closed", () => openFilesIn(daemon, directory.path).length === 0);
    expect(readdirSync(directory.path).filter((name) => name !== "big")).toEqual([]);
  });

  it.concurrent("ends with UNAVAILABLE when the daemon stops", async () => {
    // What follows something is told at once: who waits for this grace has failed.
    const grace = FOLLOWING_RPCS.has(procedure) ? "60s" : "100ms";
    await using daemon = await startDaemon({ args: ["--shutdown-grace", grace] });
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const stopReading = new AbortController();
    const running = rpc.start(clients, directory.path, stopReading.signal);
    const ended = codeOf(running.rest);
    await running.first;
    if (touchesFiles(rpc)) await eventually("the file is open", () => openFilesIn(daemon, directory.path).length > 0);
    expect(await daemon.stop()).toBe(0);
    // What waits for a reader that reads no more ends with its connection.
    if (/\/(ReadFile|ListDirectory|Find|Search|ReadArchive)$/.test(procedure)) stopReading.abort();
    else expect(await ended).toBe("Unavailable");
    expect(readdirSync(directory.path).filter((name) => name !== "big")).toEqual([]);
  });
});
