import type { Tickets } from "../../auth/tickets.js";
import { ANYBODY } from "../../call.js";
import type { HttpRoute } from "../http-route.js";

/** POST /v1/tickets: what a browser puts into the address of its next WebSocket. */
export function createTicketRoutes(tickets: Tickets): HttpRoute[] {
  return [
    {
      method: "POST",
      path: "/v1/tickets",
      // What the WebSockets are that a ticket opens.
      requires: "process",
      handle({ call, sendJson }) {
        const { ticket, expiresAt } = tickets.issue(call.caller ?? ANYBODY);
        sendJson(201, { ticket, expires_at: expiresAt.toISOString() }, { "cache-control": "no-store" });
      },
    },
  ];
}
