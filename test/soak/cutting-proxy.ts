import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy extends Disposable {
  readonly port: number;
  readonly cuts: number;
}

/** Forwards to a port of this machine and drops each connection after a random number of bytes, wherever a frame may be then. */
export async function startCuttingProxy(port: number, random: (below: number) => number): Promise<CuttingProxy> {
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    let rest = 2_000 + random(400_000);
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", end).on("close", () => {
        open.delete(socket);
        end();
      });
    }
    const forward = (to: Socket) => (chunk: Buffer) => {
      to.write(chunk.subarray(0, Math.max(0, rest)));
      rest -= chunk.length;
      if (rest > 0) return;
      cuts++;
      end();
    };
    near.on("data", forward(far));
    far.on("data", forward(near));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: ownPort } = server.address() as { port: number };
  return {
    port: ownPort,
    get cuts() {
      return cuts;
    },
    [Symbol.dispose]() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
