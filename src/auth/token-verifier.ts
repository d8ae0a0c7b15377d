import { hash, timingSafeEqual } from "node:crypto";
import { bearerToken } from "./token.js";

const SHA256_BYTES = 32;

interface AcceptedToken {
  readonly digest: Buffer;
  /** On the clock of performance.now(). */
  expiresAt: number;
}

/** Compares bearer tokens with the accepted ones. Keeps digests only, and compares in constant time. */
export class TokenVerifier {
  #accepted: AcceptedToken[];
  /** Digest of the token that is being looked at: a buffer of its own for every call would be work for the garbage collector. */
  readonly #shown = Buffer.alloc(SHA256_BYTES);

  constructor(token: string) {
    this.#accepted = [{ digest: digestOf(token), expiresAt: Number.POSITIVE_INFINITY }];
  }

  /** `authorization` as the header has it; the scheme's case does not matter (RFC 9110). */
  verify(authorization: string | undefined): boolean {
    const token = bearerToken(authorization);
    if (token === undefined) return false;
    this.#shown.write(hash("sha256", token, "hex"), "hex");
    const now = performance.now();
    // Every one is compared, so that the time does not tell which.
    let isAccepted = false;
    for (const { digest, expiresAt } of this.#accepted)
      if (timingSafeEqual(digest, this.#shown) && now < expiresAt) isAccepted = true;
    return isAccepted;
  }

  /**
   * Accepts a new token at once; the present one keeps working for `overlapMs`, for callers that have not heard of it. Returns
   * false when it is the present one.
   */
  rotate(token: string, overlapMs: number): boolean {
    const digest = digestOf(token);
    if (this.#accepted[0]?.digest.equals(digest)) return false;
    const now = performance.now();
    const kept = this.#accepted.filter((accepted) => accepted.expiresAt > now && !accepted.digest.equals(digest));
    for (const accepted of kept) accepted.expiresAt = Math.min(accepted.expiresAt, now + overlapMs);
    this.#accepted = [{ digest, expiresAt: Number.POSITIVE_INFINITY }, ...kept];
    return true;
  }
}

function digestOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
