import type { Duplex } from "node:stream";
import { Code } from "@connectrpc/connect";
import { type Caller, isDaemonToken } from "../call.js";
import type { Refusal, Verdict } from "../refusal.js";
import type { ClientCertificates } from "./client-certificates.js";
import type { JwtCallers } from "./jwt-callers.js";
import type { KnownCallers } from "./known-callers.js";

/** Knows everybody but whoever has the daemon's own token. */
export class Authenticator {
  readonly #known: KnownCallers | undefined;
  readonly #jwts: JwtCallers | undefined;
  readonly #certificates: ClientCertificates | undefined;

  constructor(known: KnownCallers | undefined, jwts: JwtCallers | undefined, certificates?: ClientCertificates) {
    this.#known = known;
    this.#jwts = jwts;
    this.#certificates = certificates;
  }

  /** Whose a bearer token is. Undefined: nobody's that is known here. */
  identify(token: string): Verdict | undefined | Promise<Verdict> {
    const caller = this.#known?.byToken(token);
    if (caller !== undefined) return unlessExpired(caller);
    return this.#jwts?.identify(token);
  }

  /** What somebody who was let in before may do now: whoever has left the scopes file, nothing. */
  current(caller: Caller): Verdict {
    const isListed = (caller.how === "token" || caller.how === "certificate") && !isDaemonToken(caller);
    if (!isListed) return unlessExpired(caller);
    const now = this.#known?.byName(caller.name);
    return now === undefined ? { refusal: unauthenticated(`${caller.name} is known no longer`) } : unlessExpired(now);
  }

  /** Whose the certificate of a connection is. Undefined: it has shown none. */
  identifyConnection(socket: Duplex): Verdict | undefined {
    const names = this.#certificates?.namesOf(socket);
    if (names === undefined) return undefined;
    if ("why" in names) return { refusal: unauthenticated(`the client certificate does not count: ${names.why}`) };
    const caller = this.#known?.byCertificate(names);
    if (caller !== undefined) return unlessExpired(caller);
    const shown = names
      .map((name) => JSON.stringify(name.slice(0, 200)))
      .slice(0, 5)
      .join(", ");
    return { refusal: unauthenticated(`nobody is known by the names of the client certificate: ${shown || "it has none"}`) };
  }
}

export function unlessExpired(caller: Caller): Verdict {
  const { expiresAtMs, name } = caller;
  if (expiresAtMs === undefined || Date.now() < expiresAtMs) return { caller };
  return { refusal: unauthenticated(`what ${name} has shown expired at ${new Date(expiresAtMs).toISOString()}`) };
}

/** RFC 6750: the client is to come back with another token. */
export function unauthenticated(message: string): Refusal {
  const headers = { "www-authenticate": 'Bearer error="invalid_token"' };
  return { code: Code.Unauthenticated, message, status: 401, headers };
}
