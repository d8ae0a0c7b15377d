import { expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { Outside } from "./support/outside.js";

const WATCHERS = 4;
const WATCHES = 3;
/** Usual is one second where others want the processor too. */
const READY_MS = 10_000;

it("a watch of a tree that never rests is ready all the same", async () => {
  using base = temporaryDirectory();
  const outside = new Outside(base.path, 65534);
  await using daemon = await startDaemon({ args: ["--root", outside.root] });
  await using clients = connectTo(daemon.url);
  {
    await using _swapping = await outside.swapping();
    let ready = 0;
    const watcher = async () => {
      for (let watch = 0; watch < WATCHES; watch++) {
        const events = clients.filesystem.watchDirectory({ path: "/", options: { recursive: true } }, { timeoutMs: READY_MS });
        for await (const { event } of events) {
          expect(event.case).toBe("ready");
          ready++;
          break;
        }
      }
    };
    await Promise.all(Array.from({ length: WATCHERS }, watcher));
    expect(ready).toBe(WATCHERS * WATCHES);
  }
});
