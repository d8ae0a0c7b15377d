// A process of many clients, which may be killed at any moment: does what the orders in its argument say until its standard input
// ends, then finishes what it has begun.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { createClient } from "../../src/client/index.js";
import { connectTo } from "../helpers/clients.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { createRandom } from "../soak/jobs.js";
import type { Message, Orders } from "./messages.js";
import { type Client, OPERATIONS } from "./operations.js";

const orders: Orders = JSON.parse(process.argv[2] ?? "");
const say = (message: Message) => process.stdout.write(`${JSON.stringify(message)}\n`);
/** A daemon that refuses everything is not asked without a pause. */
const PAUSE_AFTER_ERROR_MS = 50;
/** What Node says of a connection that ended or did not come about; the libraries give it codes of their own. */
const BROKEN = /EPIPE|ECONNRESET|http\/2|fetch failed|socket hang up|aborted/;

let goesOn = true;
const end = once(process.stdin.resume(), "end").then(() => {
  goesOn = false;
});

async function work(number: number): Promise<void> {
  const protocol = orders.protocols[number % orders.protocols.length] ?? "gRPC";
  await using clients = connectTo(orders.url, { protocol });
  using picod = createClient({ url: orders.url, token: TOKEN });
  const random = createRandom(orders.seed * 1_000 + number);
  const name = `${orders.name}-${number}`;
  const client: Client = { orders, name, random, clients, picod, say, stored: [], operations: 0 };
  for (; goesOn; client.operations++) {
    const kind = orders.kinds[random(orders.kinds.length)] ?? "exec";
    const startedAt = performance.now();
    try {
      const bytes = await OPERATIONS[kind](client);
      say({ type: "done", client: name, kind, ms: performance.now() - startedAt, bytes });
    } catch (error) {
      const { code, message } = ConnectError.from(error);
      say({ type: "failed", kind, code: BROKEN.test(message) ? "connection" : (Code[code] ?? ""), message });
      await sleep(PAUSE_AFTER_ERROR_MS);
    }
  }
}

await Promise.all([end, ...Array.from({ length: orders.clients }, (_, number) => work(number))]);
