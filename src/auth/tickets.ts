import { hash, randomBytes } from "node:crypto";

/** Tickets that nobody has used yet; the oldest give way to more. */
const MAX_TICKETS = 10_000;

export interface Ticket {
  readonly ticket: string;
  readonly expiresAt: Date;
}

/**
 * Lets a browser open a WebSocket, to which it cannot add a header: whoever has the token gets a ticket that works once, for a
 * moment, and may therefore stand in a URL, where the token must not.
 */
export class Tickets {
  readonly #lifetimeMs: number;
  /** Digests and when they end, on the clock of performance.now(), oldest first. */
  readonly #open = new Map<string, number>();

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs;
  }

  issue(): Ticket {
    const ticket = randomBytes(24).toString("base64url");
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MAX_TICKETS && oldest !== undefined) this.#open.delete(oldest);
    this.#open.set(hash("sha256", ticket), performance.now() + this.#lifetimeMs);
    return { ticket, expiresAt: new Date(Date.now() + this.#lifetimeMs) };
  }

  /** True once for each ticket that was issued and has not expired. */
  redeem(ticket: string): boolean {
    const digest = hash("sha256", ticket);
    const expiresAt = this.#open.get(digest);
    this.#open.delete(digest);
    return expiresAt !== undefined && performance.now() < expiresAt;
  }
}
