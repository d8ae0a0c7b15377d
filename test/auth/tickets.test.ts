import { describe, expect, it } from "vitest";
import { Tickets } from "../../src/auth/tickets.js";
import { DAEMON_TOKEN } from "../../src/call.js";
import { eventually } from "../helpers/eventually.js";

/** Whoever has asked for it, and by way of the ticket. */
const ASKED = { ...DAEMON_TOKEN, how: "ticket" };

describe("Tickets", () => {
  it("are redeemed once", () => {
    const tickets = new Tickets(60_000);
    const { ticket } = tickets.issue(DAEMON_TOKEN);
    const other = tickets.issue(DAEMON_TOKEN);
    expect(ticket).toMatch(/^[\w-]{32}$/);
    expect([tickets.redeem(""), tickets.redeem(ticket), tickets.redeem(ticket)]).toEqual([undefined, ASKED, undefined]);
    expect(tickets.redeem(other.ticket)).toEqual(ASKED);
  });

  it("expire", async () => {
    const tickets = new Tickets(50);
    const { ticket, expiresAt } = tickets.issue(DAEMON_TOKEN);
    await eventually("its time is over", () => Date.now() > expiresAt.getTime() + 50);
    expect(tickets.redeem(ticket)).toBeUndefined();
  });

  it("that nobody uses give way to more", () => {
    const tickets = new Tickets(60_000);
    const oldest = tickets.issue(DAEMON_TOKEN);
    for (let count = 0; count < 10_000; count++) tickets.issue(DAEMON_TOKEN);
    expect(tickets.redeem(oldest.ticket)).toBeUndefined();
  });
});
