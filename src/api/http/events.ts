import { EventHistory } from "../../process/event-history.js";
import type { RegistryEvent } from "../../process/process-registry.js";
import type { Sandbox } from "../../sandbox.js";
import type { HttpExchange, HttpRoute } from "../http-route.js";
import { type ProcessObject, toProcessObject } from "./process-object.js";

const MAX_EVENTS = 1_000;
const KEEPALIVE_MS = 15_000;
/** A reader that lets so much wait is cut off; it comes back with the number of the last event it saw. */
const MAX_WAITING_BYTES = 1024 * 1024;

const NAME_OF_KIND: Readonly<Record<RegistryEvent["kind"], string>> = {
  started: "process.created",
  updated: "process.updated",
  ended: "process.exited",
  deleted: "process.deleted",
};

/**
 * GET /v1/events: what happens to processes, as server-sent events. `Last-Event-ID` continues behind that event; `history.lost`
 * comes first when some of what happened since is no longer kept.
 */
export function createEventRoutes(sandbox: Sandbox): HttpRoute[] {
  const history = new EventHistory<ProcessObject>(sandbox.registry, ({ record }) => toProcessObject(record), MAX_EVENTS);
  return [
    {
      method: "GET",
      path: "/v1/events",
      requires: "process:read",
      follows: true,
      handle: (exchange) => stream(history, exchange),
    },
  ];
}

async function stream(history: EventHistory<ProcessObject>, exchange: HttpExchange): Promise<void> {
  const { request, query, call, response, abortSignal, begin, write } = exchange;
  const asked = request.headers["last-event-id"]?.toString() ?? query.get("last_event_id") ?? "";
  let lastId = /^\d{1,16}$/.test(asked) ? Number(asked) : history.lastId;
  if (!begin({ "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" })) return;
  void write(": connected\n\n");

  const send = () => {
    const { events, lost } = history.after(lastId, call.caller?.capability);
    if (lost) void write(`event: history.lost\ndata: {"after":${lastId}}\n\n`);
    for (const { id, kind, shown } of events) {
      void write(`id: ${id}\nevent: ${NAME_OF_KIND[kind]}\ndata: ${JSON.stringify(shown)}\n\n`);
    }
    lastId = history.lastId;
    if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
  };
  const stop = history.onEvent(send);
  const timer = setInterval(() => void write(": keepalive\n\n"), KEEPALIVE_MS);
  try {
    send();
    await new Promise<void>((resolve) => {
      abortSignal.addEventListener("abort", () => resolve(), { once: true });
      if (abortSignal.aborted) resolve();
    });
  } finally {
    clearInterval(timer);
    stop();
  }
}
