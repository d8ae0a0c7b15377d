import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { FOLLOWING_RPCS } from "../../src/api/routes.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { leavesNothing } from "./support/leaves-nothing.js";
import { openFilesIn } from "./support/open-files.js";
import { STREAMING_RPCS } from "./support/streaming-cases.js";

const FILE_RPCS = STREAMING_RPCS.filter(({ procedure }) => procedure.startsWith("/picod.v1.FilesystemService/"));

/** Some make a large tree, four times where memory is slow to be given back. */
const TIMEOUT_MS = 120_000;

it.each(FILE_RPCS)(
  "$procedure leaves nothing behind when the connection is cut in its middle",
  async ({ procedure, start }) => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      using directory = temporaryDirectory();
      const clients = connectTo(daemon.url);
      const running = start(clients, directory.path, new AbortController().signal);
      const ended = running.rest.then(
        () => "done",
        () => "cut",
      );
      await running.first;
      // What follows something has said that it is ready.
      if (!FOLLOWING_RPCS.has(procedure))
        await eventually("it is under way", () => openFilesIn(daemon, directory.path).length > 0);
      await clients[Symbol.asyncDispose]();
      // Readers here take the rest only when asked to; writers see it.
      if (/Write/.test(procedure)) expect(await ended).toBe("cut");
      await eventually("every file is closed", () => openFilesIn(daemon, directory.path).length === 0);
      await eventually("no temporary is left", () => readdirSync(directory.path).every((name) => !name.startsWith(".")));
    });
  },
  TIMEOUT_MS,
);
