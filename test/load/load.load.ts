import { setTimeout as sleep } from "node:timers/promises";
import { it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { ask } from "../rpc/support/http1.js";
import { at, SECONDS, timed, underLoad } from "./run.js";

const CLIENTS = 200;
const BETWEEN_PROBES_MS = 100;

it(`${CLIENTS} clients get all that they were promised`, async () => {
  await using daemon = await startDaemon();
  const work = async () => {
    const until = performance.now() + SECONDS * 1000;
    const times: number[] = [];
    while (performance.now() < until) {
      times.push(await timed(() => ask(daemon, "/healthz")));
      await sleep(BETWEEN_PROBES_MS);
    }
    const [p50, p99, max] = [0.5, 0.99, 1].map((quantile) => at(times, quantile));
    return `${CLIENTS} clients; ${times.length} new connections answered in p50 ${p50}, p99 ${p99}, at most ${max} ms`;
  };
  await underLoad("load", daemon, work, { clients: CLIENTS });
});
