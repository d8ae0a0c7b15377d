import { setTimeout as sleep } from "node:timers/promises";
import { it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { SECONDS, underLoad } from "./run.js";

const CLIENTS = 200;

it(`${CLIENTS} clients get all that they were promised`, async () => {
  await using daemon = await startDaemon();
  const work = async () => {
    await sleep(SECONDS * 1000);
    return `${CLIENTS} clients`;
  };
  await underLoad("load", daemon, work, { clients: CLIENTS });
});
