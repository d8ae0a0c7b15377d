import type { Tickets } from "../../auth/tickets.js";
import type { HttpRoute } from "../http-route.js";

/** POST /v1/tickets: what a browser puts into the address of its next WebSocket. */
export function createTicketRoutes(tickets: Tickets): HttpRoute[] {
  return [
    {
      method: "POST",
      path: "/v1/tickets",
      handle({ sendJson }) {
        const { ticket, expiresAt } = tickets.issue();
        sendJson(201, { ticket, expires_at: expiresAt.toISOString() }, { "cache-control": "no-store" });
      },
    },
  ];
}
