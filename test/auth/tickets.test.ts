import { describe, expect, it } from "vitest";
import { Tickets } from "../../src/auth/tickets.js";
import { eventually } from "../helpers/eventually.js";

describe("Tickets", () => {
  it("are redeemed once", () => {
    const tickets = new Tickets(60_000);
    const { ticket } = tickets.issue();
    const other = tickets.issue();
    expect(ticket).toMatch(/^[\w-]{32}$/);
    expect([tickets.redeem(""), tickets.redeem(ticket), tickets.redeem(ticket)]).toEqual([false, true, false]);
    expect(tickets.redeem(other.ticket)).toBe(true);
  });

  it("expire", async () => {
    const tickets = new Tickets(50);
    const { ticket, expiresAt } = tickets.issue();
    await eventually("its time is over", () => Date.now() > expiresAt.getTime() + 50);
    expect(tickets.redeem(ticket)).toBe(false);
  });

  it("that nobody uses give way to more", () => {
    const tickets = new Tickets(60_000);
    const oldest = tickets.issue();
    for (let count = 0; count < 10_000; count++) tickets.issue();
    expect(tickets.redeem(oldest.ticket)).toBe(false);
  });
});
