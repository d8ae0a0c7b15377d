import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Caller, DAEMON_TOKEN, type HowKnown, isDaemonToken } from "../call.js";
import type { Scope } from "./scopes.js";

const READING: ReadonlySet<Scope> = new Set(["files:read"]);
const WRITING: ReadonlySet<Scope> = new Set(["files:write"]);

/** Addresses for single use that nobody has used yet; the oldest give way to more. */
const MAX_OPEN = 10_000;

/** What a signature lets its bearer do. */
export interface SignedRequest {
  /** GET, which HEAD counts as, or PUT. */
  readonly method: string;
  /** Decoded, in its one form. */
  readonly path: string;
  /** As the query names the user; empty for the default. */
  readonly user: string;
}

/**
 * Lets whoever has a token hand out an address for one file, which works without it: method, path, user and time are signed with a key that
 * nobody else has and that ends with the daemon. Other parameters may be added by whoever has the address.
 */
export class SignedUrls {
  readonly #key = randomBytes(32);
  /** Digests of the nonces of those for single use. */
  readonly #open = new Set<string>();

  /**
   * The parameters to be added to the query. @param expiresAtMs on the clock of Date.now(); not beyond the end of what the signer has shown.
   * @param signer whose path prefixes, if there are any, confine the request, and whose capability it has.
   */
  sign(request: SignedRequest, expiresAtMs: number, singleUse: boolean, signer: Caller): URLSearchParams {
    const expires = String(Math.ceil(Math.min(expiresAtMs, signer.expiresAtMs ?? expiresAtMs) / 1000));
    const by = isDaemonToken(signer) ? "" : `${signer.how}:${signer.name}`;
    const within = signer.pathPrefixes ?? [];
    const granted = signer.capability?.name ?? "";
    if (signer.pathPrefixes?.length === 0) throw new Error("whoever may open nothing can sign nothing");
    const once = singleUse ? randomBytes(16).toString("base64url") : "";
    if (singleUse) this.#remember(once);
    const user = request.user === "" ? {} : { user: request.user };
    const signature = this.#signatureOf(request, expires, once, by, granted, within).toString("base64url");
    const given = {
      ...user,
      expires,
      ...(singleUse ? { once } : {}),
      ...(by === "" ? {} : { by }),
      ...(granted === "" ? {} : { granted }),
      signature,
    };
    const query = new URLSearchParams(given);
    for (const prefix of within) query.append("within", prefix);
    return query;
  }

  /**
   * Who has signed the query for this request, as it was then and with no more scopes than that takes, if the signature still counts. One for
   * single use is used up.
   */
  redeem(request: SignedRequest, query: URLSearchParams): Caller | undefined {
    const [expires, once, by] = [query.get("expires") ?? "", query.get("once") ?? "", query.get("by") ?? ""];
    const [within, granted] = [query.getAll("within"), query.get("granted") ?? ""];
    const given = Buffer.from(query.get("signature") ?? "", "base64url");
    const expected = this.#signatureOf(request, expires, once, by, granted, within);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    if (!(Date.now() < Number(expires) * 1000)) return undefined;
    // Of those that were used, or gave way, nothing is left to be found.
    if (once !== "" && !this.#open.delete(hash("sha256", once))) return undefined;
    const [how, name] =
      by === "" ? [DAEMON_TOKEN.how, DAEMON_TOKEN.name] : [by.split(":", 1)[0] as HowKnown, by.slice(by.indexOf(":") + 1)];
    return {
      name,
      how,
      scopes: request.method === "PUT" ? WRITING : READING,
      ...(within.length === 0 ? {} : { pathPrefixes: within }),
      ...(granted === "" ? {} : { capabilityName: granted }),
    };
  }

  #remember(once: string): void {
    const [oldest] = this.#open;
    if (this.#open.size >= MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
    this.#open.add(hash("sha256", once));
  }

  /** As JSON, in which no two lists look alike. */
  #signatureOf(
    { method, path, user }: SignedRequest,
    expires: string,
    once: string,
    by: string,
    granted: string,
    within: readonly string[],
  ): Buffer {
    const signed = [method === "HEAD" ? "GET" : method, path, user, expires, once, by, granted, within];
    return createHmac("sha256", this.#key).update(JSON.stringify(signed)).digest();
  }
}
