import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Forwards to a port that may change, and cuts all connections when it is told to. Use with `using`. */
export class SwitchedProxy implements Disposable {
  target: number;
  cuts = 0;
  /** From the daemon, and to it. */
  bytes = 0;
  sent = 0;
  /** What came from the daemon at once. */
  packets = 0;
  readonly #open = new Set<Socket>();
  readonly #server = createServer((near) => this.#forward(near));

  private constructor(target: number) {
    this.target = target;
  }

  static async to(target: number): Promise<SwitchedProxy> {
    const proxy = new SwitchedProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.cuts++;
    for (const socket of this.#open) socket.destroy();
  }

  [Symbol.dispose](): void {
    this.cut();
    this.#server.close();
  }

  #forward(near: Socket): void {
    const far = connect(this.target, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
    far.on("data", (chunk) => {
      this.bytes += chunk.length;
      this.packets++;
    });
    near.on("data", (chunk) => {
      this.sent += chunk.length;
    });
  }
}
