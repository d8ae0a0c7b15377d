import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

/** A tree whose listing and archive no buffers on the way hold. */
function fill(path: string): void {
  for (let index = 0; index < 40; index++) {
    mkdirSync(join(path, `${index}`), { recursive: true });
    for (let file = 0; file < 20; file++)
      writeFileSync(join(path, `${index}/${"n".repeat(200)}${file}`), Buffer.alloc(50_000, "x"));
  }
}

/** Removes it after the first message. Resolves with the code, or "done". */
async function removedMeanwhile(messages: AsyncIterable<unknown>, path: string): Promise<string> {
  try {
    for await (const _ of messages) rmSync(path, { recursive: true, force: true });
    return "done";
  } catch (error) {
    return Code[ConnectError.from(error).code] ?? "";
  }
}

async function* copied({ filesystem }: Clients, path: string, to: string, directory: string) {
  const copy = filesystem.copy({ source: path, destination: to });
  copy.catch(() => undefined);
  await eventually("it has begun", () => readdirSync(directory).some((name) => name.startsWith(".picod-")));
  yield;
  yield await copy;
}

it("a directory that is removed while it is listed, archived or copied gives a clear answer", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  const path = join(directory.path, "tree");
  const { filesystem } = clients;
  // What has vanished is left out.
  fill(path);
  expect(await removedMeanwhile(filesystem.listDirectory({ path, depth: 0 }), path)).toBe("done");
  fill(path);
  expect(await removedMeanwhile(filesystem.find({ path }), path)).toBe("done");
  fill(path);
  expect(await removedMeanwhile(filesystem.readArchive({ path }), path)).toMatch(/^(done|NotFound|Aborted)$/);
  // A copy is of all that was there when it came to it, or not made.
  fill(path);
  const to = join(directory.path, "copy");
  const code = await removedMeanwhile(copied(clients, path, to, directory.path), path);
  expect(code).toMatch(/^(done|NotFound)$/);
  expect(existsSync(to)).toBe(code === "done");
  expect(readdirSync(directory.path).filter((name) => name !== "copy")).toEqual([]);
}, 60_000);
