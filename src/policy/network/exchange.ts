import type { Duplex } from "node:stream";
import type { Destination, DomainList } from "./domain-list.js";

/** What a proxy does for one client: a request and its answer, or a tunnel. It ends when the client goes. */
export class Exchange {
  /** Undefined: what was asked for is none. */
  readonly destination: Destination | undefined;
  /** As the client has it. */
  readonly asked: string;
  /** What is connected to, one of these, once they are known. */
  addresses: readonly string[] = [];
  readonly #ending = new AbortController();

  constructor(destination: Destination | undefined, asked: string, client: Duplex) {
    this.destination = destination;
    this.asked = asked;
    const gone = () => this.end(new Error("the client has gone"));
    if (client.destroyed) gone();
    else client.once("close", gone);
  }

  /** Aborts when it is to end. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Why it was ended; undefined: it was not. */
  get reason(): unknown {
    return this.signal.aborted ? this.signal.reason : undefined;
  }

  /** Whether a list lets it through. */
  isWithin(domains: DomainList): boolean {
    const { destination } = this;
    if (destination === undefined || !domains.allows(destination)) return false;
    return this.addresses.every((address) => domains.allowsAddress(address, destination.port));
  }

  end(reason: Error): void {
    this.#ending.abort(reason);
  }

  /** Calls back when it ends, at once when it has. */
  onEnd(listener: () => void): void {
    if (this.signal.aborted) listener();
    else this.signal.addEventListener("abort", listener, { once: true });
  }
}
