import { closeSync } from "node:fs";
import type { ThreadNetwork } from "../../os/confined-thread.js";
import { RefusalLimit } from "../../refusal-limit.js";
import type { Capability } from "../capability.js";
import { DomainList } from "./domain-list.js";
import { EgressProxy, type Refused } from "./egress-proxy.js";

/** In a network where nothing else listens yet. */
const PROXY_PORT = 3128;
const PROXY_URL = `http://127.0.0.1:${PROXY_PORT}`;
const NOT_PROXIED = "localhost,127.0.0.1,::1";
const VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/** What a proxy does not let through. */
export interface Refusals {
  onRefused(refused: Refused): void;
  /** There were so many more, in so short a time that they are not told one by one. */
  onLeftOut(count: number): void;
}

/** The network of one capability: loopback, and a proxy on it as the only way out. Its first thread makes it. */
export class CapabilityNetwork {
  readonly environment: Readonly<Record<string, string>> = proxyEnvironment();
  readonly #refusals: Refusals;
  readonly #limit: RefusalLimit;
  #domains: readonly string[];
  #fd: number | undefined;
  #proxy: EgressProxy | undefined;

  constructor({ network }: Capability, refusals: Refusals) {
    this.#domains = network.allowedDomains;
    this.#refusals = refusals;
    this.#limit = new RefusalLimit((count) => refusals.onLeftOut(count));
  }

  get isMade(): boolean {
    return this.#fd !== undefined;
  }

  /** For a thread that is to be in it. */
  toEnter(): ThreadNetwork {
    return this.#fd === undefined ? { kind: "new", listenPort: PROXY_PORT } : { kind: "join", fd: this.#fd };
  }

  /** What the first thread has made. */
  use({ fd, listenFd }: { readonly fd: number; readonly listenFd: number | undefined }): void {
    this.#fd = fd;
    if (listenFd === undefined) return;
    this.#proxy = new EgressProxy(listenFd, new DomainList(this.#domains), (refused) => {
      if (!this.#limit.isTooMuch()) this.#refusals.onRefused(refused);
    });
  }

  /** What the policy says now. Connections to hosts that are listed no longer are ended. */
  allow({ network }: Capability): void {
    if (network.allowedDomains === this.#domains) return;
    this.#domains = network.allowedDomains;
    this.#proxy?.allow(new DomainList(this.#domains));
  }

  close(): void {
    this.#proxy?.close();
    this.#limit.tellLeftOut();
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Programs disagree about the case. */
function proxyEnvironment(): Record<string, string> {
  const proxied = VARIABLES.map((name): [string, string] => [name, PROXY_URL]);
  const pairs: [string, string][] = [...proxied, ["NO_PROXY", NOT_PROXIED]];
  return Object.fromEntries(
    pairs.flatMap(([name, value]) => [
      [name, value],
      [name.toLowerCase(), value],
    ]),
  );
}
