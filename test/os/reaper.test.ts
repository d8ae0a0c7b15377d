import { expect, it } from "vitest";
import { Reaper } from "../../src/os/reaper.js";
import { spawn } from "../../src/os/spawn.js";
import { UserDatabase } from "../../src/os/users.js";
import { eventually } from "../helpers/eventually.js";

const user = new UserDatabase().find("root");

/** A child that nobody has asked for, as an orphan is; resolves with its pid when it has been reaped. */
async function reapedOrphan(reaper: Reaper): Promise<number> {
  if (user === undefined) throw new Error("there is no root");
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = reaper.onOrphanExit(resolve);
  const stdio = [0, 1, 2] as const;
  const pid = spawn({ file: "/bin/false", argv: ["false"], env: [], cwd: "/", user, stdio, softOpenFiles: 1024 });
  await promise;
  stop();
  return pid;
}

it("gives an exit to the start that it may be of, and to none that begins later", async () => {
  const reaper = new Reaper();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  try {
    const exits: string[] = [];
    const starting = reaper.whileStarting(() => first.promise);
    const claimed = await reapedOrphan(reaper);
    const dropped = await reapedOrphan(reaper);
    // Starts overlap for ever on a busy daemon, which meets every pid again.
    const later = reaper.whileStarting(() => second.promise);
    reaper.onExit(claimed, ({ exitCode }) => exits.push(`claimed ${exitCode}`));
    await eventually("the early exit is told", () => exits.length === 1);
    first.resolve();
    await starting;
    reaper.onExit(dropped, ({ exitCode }) => exits.push(`dropped ${exitCode}`));
    second.resolve();
    await later;
    await new Promise((resolve) => setImmediate(resolve));
    expect(exits).toEqual(["claimed 1"]);
  } finally {
    reaper.close();
  }
});
