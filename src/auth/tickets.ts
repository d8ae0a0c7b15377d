import { hash, randomBytes } from "node:crypto";
import type { Caller } from "../call.js";

/** Tickets that nobody has used yet; the oldest give way to more. */
const MAX_TICKETS = 10_000;

export interface Ticket {
  readonly ticket: string;
  readonly expiresAt: Date;
}

interface OpenTicket {
  /** Who has asked for it: it opens what this one may open. */
  readonly caller: Caller;
  /** On the clock of performance.now(). */
  readonly expiresAt: number;
}

/**
 * Lets a browser open a WebSocket, to which it cannot add a header: whoever has a token gets a ticket that works once, for a
 * moment, and may therefore stand in a URL, where the token must not.
 */
export class Tickets {
  readonly #lifetimeMs: number;
  /** By digest, oldest first. */
  readonly #open = new Map<string, OpenTicket>();

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs;
  }

  issue(caller: Caller): Ticket {
    const ticket = randomBytes(24).toString("base64url");
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MAX_TICKETS && oldest !== undefined) this.#open.delete(oldest);
    this.#open.set(hash("sha256", ticket), {
      caller: { ...caller, how: "ticket" },
      expiresAt: performance.now() + this.#lifetimeMs,
    });
    return { ticket, expiresAt: new Date(Date.now() + this.#lifetimeMs) };
  }

  /** Who has asked for a ticket that has not expired; once for each. */
  redeem(ticket: string): Caller | undefined {
    const digest = hash("sha256", ticket);
    const open = this.#open.get(digest);
    this.#open.delete(digest);
    return open !== undefined && performance.now() < open.expiresAt ? open.caller : undefined;
  }
}
