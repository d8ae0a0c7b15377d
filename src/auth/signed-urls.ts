import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

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
 * Lets whoever has the token hand out an address for one file, which works without it: method, path, user and time are signed with a key that
 * nobody else has and that ends with the daemon. Other parameters may be added by whoever has the address.
 */
export class SignedUrls {
  readonly #key = randomBytes(32);
  /** Digests of the nonces of those for single use. */
  readonly #open = new Set<string>();

  /** The parameters to be added to the query. @param expiresAtMs on the clock of Date.now(). */
  sign(request: SignedRequest, expiresAtMs: number, singleUse: boolean): URLSearchParams {
    const expires = String(Math.ceil(expiresAtMs / 1000));
    const once = singleUse ? randomBytes(16).toString("base64url") : "";
    if (singleUse) this.#remember(once);
    const user = request.user === "" ? {} : { user: request.user };
    const signature = this.#signatureOf(request, expires, once).toString("base64url");
    return new URLSearchParams({ ...user, expires, ...(singleUse ? { once } : {}), signature });
  }

  /** Whether the query carries a signature for this request that still counts. One for single use is used up. */
  redeem(request: SignedRequest, query: URLSearchParams): boolean {
    const [expires, once] = [query.get("expires") ?? "", query.get("once") ?? ""];
    const given = Buffer.from(query.get("signature") ?? "", "base64url");
    const expected = this.#signatureOf(request, expires, once);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
    if (!(Date.now() < Number(expires) * 1000)) return false;
    // Of those that were used, or gave way, nothing is left to be found.
    return once === "" || this.#open.delete(hash("sha256", once));
  }

  #remember(once: string): void {
    const [oldest] = this.#open;
    if (this.#open.size >= MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
    this.#open.add(hash("sha256", once));
  }

  /** As JSON, in which no two lists look alike. */
  #signatureOf({ method, path, user }: SignedRequest, expires: string, once: string): Buffer {
    const signed = [method === "HEAD" ? "GET" : method, path, user, expires, once];
    return createHmac("sha256", this.#key).update(JSON.stringify(signed)).digest();
  }
}
