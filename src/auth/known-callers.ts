import { hash } from "node:crypto";
import type { Caller } from "../call.js";

/** Somebody whom the scopes file names. */
export interface KnownCaller {
  readonly caller: Caller;
  /** SHA-256 of the token, in hexadecimal. */
  readonly digest?: string;
  /** A name in the client's certificate: `uri:spiffe://cluster/gateway`. */
  readonly certificate?: string;
}

/** Whom the scopes file names, until it is read again. */
export class KnownCallers {
  #byName: ReadonlyMap<string, Caller> = new Map();
  #byDigest: ReadonlyMap<string, Caller> = new Map();
  #byCertificate: ReadonlyMap<string, Caller> = new Map();

  constructor(known: readonly KnownCaller[]) {
    this.replace(known);
  }

  /** All others are unknown from now on. */
  replace(known: readonly KnownCaller[]): void {
    this.#byName = new Map(known.map(({ caller }) => [caller.name, caller]));
    this.#byDigest = new Map(known.flatMap(({ caller, digest }) => (digest === undefined ? [] : [[digest, caller]])));
    this.#byCertificate = new Map(
      known.flatMap(({ caller, certificate }) => (certificate === undefined ? [] : [[certificate, caller]])),
    );
  }

  /** All that some of them have. */
  get capabilityNames(): readonly string[] {
    return [...this.#byName.values()].flatMap(({ capabilityName }) => capabilityName ?? []);
  }

  byName(name: string): Caller | undefined {
    return this.#byName.get(name);
  }

  /** Found by the digest: how long it takes tells nothing about a token that one could go on guessing from. */
  byToken(token: string): Caller | undefined {
    return this.#byDigest.get(hash("sha256", token));
  }

  /** Of several names that are known the first in the certificate counts. */
  byCertificate(names: readonly string[]): Caller | undefined {
    for (const name of names) {
      const caller = this.#byCertificate.get(name);
      if (caller !== undefined) return caller;
    }
    return undefined;
  }
}
