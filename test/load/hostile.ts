import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const GARBAGE = randomBytes(64 * 1024);
const CONNECTIONS_AT_A_TIME = 8;

/** Connections of somebody who means no good. Whatever the daemon does to them is right. */
export class Hostile implements Disposable {
  readonly sockets: Socket[] = [];
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Of those that the daemon has taken, so many are still open. */
  get open(): number {
    return this.sockets.filter((socket) => !socket.closed).length;
  }

  connect(): Socket {
    const socket = connect(this.#port, "127.0.0.1");
    this.sockets.push(socket.on("error", () => undefined));
    return socket;
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

/** What a request that never ends begins with; the rest comes a byte at a time. */
export const SLOW_BEGINNINGS = ["", "GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ", PREFACE.slice(0, 10)] as const;

/** What garbage comes behind: nothing, what begins HTTP/2, and a body that nobody has been let in for. */
const BEGINNINGS = [
  "",
  PREFACE,
  "POST /picod.v1.ProcessService/Execute HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n",
] as const;

/** Sends so many random bytes that the kernel takes, on as many connections as that takes. Returns how many those were. */
export async function sendGarbage(port: number, bytes: number): Promise<number> {
  using hostile = new Hostile(port);
  let rest = bytes;
  let connections = 0;
  const sender = async () => {
    while (rest > 0) {
      const socket = hostile.connect().resume();
      socket.write(BEGINNINGS[connections++ % BEGINNINGS.length] ?? "");
      while (rest > 0 && !socket.destroyed) {
        const taken = await new Promise<boolean>((resolve) => socket.write(GARBAGE, (error) => resolve(!error)));
        if (taken) rest -= GARBAGE.length;
      }
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_AT_A_TIME }, sender));
  return connections;
}
