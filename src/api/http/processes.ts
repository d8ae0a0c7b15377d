import { PicodError } from "../../errors/picod-error.js";
import { follow } from "../../process/follow.js";
import type { StreamName } from "../../process/managed-process.js";
import type { ProcessRecord } from "../../process/process-record.js";
import { start } from "../../process/start.js";
import { stop } from "../../process/stop.js";
import { streamInput } from "../../process/stream-input.js";
import type { Sandbox } from "../../sandbox.js";
import { asObject, invalid, optional } from "../fields.js";
import type { HttpExchange, HttpRoute } from "../http-route.js";
import { readJson } from "../json-body.js";
import { toProcessObject, toSignal, toStartOptions } from "./process-object.js";
import { connectSocket, KUBERNETES_PROTOCOL } from "./process-socket.js";
import { toTerminalSize } from "./terminal-size.js";

const KEEPALIVE_MS = 30_000;

/** Long-lived processes for browsers and everybody without gRPC. The WebSocket is in process-socket.ts. */
export function createProcessRoutes(sandbox: Sandbox): HttpRoute[] {
  const { registry, defaults, maxInputBytes } = sandbox;

  function select({ parameters, call }: HttpExchange): ProcessRecord {
    const record = registry.find({ id: parameters.id ?? "" }, call.caller?.capability);
    call.processId = record.id;
    return record;
  }

  async function create(exchange: HttpExchange): Promise<void> {
    const options = toStartOptions(await readJson(exchange), exchange.call.trace, exchange.call.caller?.capability);
    exchange.call.subject = { paths: [], command: options.argv.length > 0 ? options.argv : options.command, user: options.user };
    if (options.size !== undefined) await sandbox.defaults.confinement.terminalTurn(options.capability);
    const record = start(sandbox, options);
    exchange.call.processId = record.id;
    exchange.sendJson(201, toProcessObject(record), { location: `/v1/processes/${record.id}` });
  }

  function list({ query, call, sendJson }: HttpExchange): void {
    const wanted = (record: ProcessRecord) => {
      const shown = toProcessObject(record);
      const pty = query.get("pty");
      const same = (["tag", "status", "session_id"] as const).every((name) => (query.get(name) ?? shown[name]) === shown[name]);
      return same && (pty === null || (pty === "true") === (shown.pty !== null));
    };
    sendJson(200, { processes: registry.list(call.caller?.capability).filter(wanted).map(toProcessObject) });
  }

  /** Ends it, if it runs, and forgets it. */
  async function remove(exchange: HttpExchange): Promise<void> {
    const record = select(exchange);
    const { forced, survivingProcesses } = await stop(record.process, defaults.killGraceMs);
    registry.delete(record);
    exchange.sendJson(200, { ...toProcessObject(record), forced, surviving_processes: survivingProcesses });
  }

  async function signal(exchange: HttpExchange): Promise<void> {
    const record = select(exchange);
    const fields = asObject(await readJson(exchange), "body");
    record.signal(toSignal(fields.signal), optional(fields, "leader_only", "boolean") ?? false);
    exchange.send(204, {}, "");
  }

  async function resize(exchange: HttpExchange): Promise<void> {
    const record = select(exchange);
    record.resize(toTerminalSize(await readJson(exchange), "size"));
    exchange.send(204, {}, "");
  }

  /**
   * The body as it is, at the pace at which the process reads it, to be repeated safely with `?offset=`; `?close=true` ends the input
   * behind it.
   */
  async function input(exchange: HttpExchange): Promise<void> {
    const { query, body, call, abortSignal, sendJson } = exchange;
    const record = select(exchange);
    const offset = toOffset(query.get("offset"));
    const inputBytes = await streamInput(record, call.caller?.capability, body[Symbol.asyncIterator](), offset, abortSignal);
    if (query.get("close") === "true") record.closeInput();
    sendJson(200, { input_bytes: inputBytes });
  }

  async function connect(exchange: HttpExchange): Promise<void> {
    const { query, call, abortSignal, acceptWebSocket } = exchange;
    const record = select(exchange);
    const stream = query.get("stream") === null ? undefined : toStream(record, query.get("stream"));
    const from = toStart(record, Number(toOffset(query.get("offset")) ?? 0n), stream);
    const socket = await acceptWebSocket([KUBERNETES_PROTOCOL]);
    await connectSocket(socket, record, { from, stream, capability: call.caller?.capability, maxInputBytes, abortSignal });
  }

  return [
    { method: "POST", path: "/v1/processes", requires: "process", handle: create },
    { method: "GET", path: "/v1/processes", requires: "process:read", handle: list },
    {
      method: "GET",
      path: "/v1/processes/{id}",
      requires: "process:read",
      handle: (exchange) => exchange.sendJson(200, toProcessObject(select(exchange))),
    },
    { method: "DELETE", path: "/v1/processes/{id}", requires: "process", handle: remove },
    { method: "POST", path: "/v1/processes/{id}/signal", requires: "process", handle: signal },
    { method: "POST", path: "/v1/processes/{id}/resize", requires: "process", handle: resize },
    { method: "POST", path: "/v1/processes/{id}/input", requires: "process", streamsBody: true, follows: true, handle: input },
    { method: "GET", path: "/v1/processes/{id}/connect", requires: "process", isWebSocket: true, follows: true, handle: connect },
    {
      method: "GET",
      path: "/v1/processes/{id}/output",
      requires: "process:read",
      follows: true,
      handle: (exchange) => output(select(exchange), exchange),
    },
  ];
}

/**
 * One stream as it is, from `?offset=` on; what is kept now, or with `?follow=true` until the process ends. Where it begins is in
 * the header `picod-offset`: behind what is no longer kept.
 */
async function output(record: ProcessRecord, { query, abortSignal, send, begin, writeThrough }: HttpExchange): Promise<void> {
  const stream = toStream(record, query.get("stream"));
  const start = toStart(record, Number(toOffset(query.get("offset")) ?? 0n), stream);
  const log = record.logs.get(stream);
  const from = Math.max(start[stream] ?? 0, log?.keptFrom ?? 0);
  const headers = { "content-type": "application/octet-stream", "picod-offset": from, "x-content-type-options": "nosniff" };
  if (query.get("follow") !== "true") {
    send(200, headers, log?.read(from, log.end - from) ?? "");
    return;
  }
  const events = follow(
    record,
    { from: { ...start, [stream]: from }, backpressure: false, keepaliveMs: KEEPALIVE_MS },
    abortSignal,
  );
  if (!begin(headers)) return;
  for await (const event of events) {
    if (event.kind === "output" && event.stream === stream) await writeThrough(event.chunk);
    // A gap in raw bytes cannot be told: the connection ends, and the reader comes back with the offset it has reached.
    if (event.kind === "trimmed" && event.stream === stream) {
      throw new PicodError("FOLLOWER_TOO_SLOW", `cannot follow ${record.id}: ${stream} was trimmed at ${event.from}`);
    }
  }
}

/**
 * Where to begin in each stream. Those that are not asked for begin at their end. @throws OFFSET_BEYOND_END when the offset is
 * beyond all that are asked for.
 */
function toStart(record: ProcessRecord, offset: number, only: StreamName | undefined): Partial<Record<StreamName, number>> {
  const isAsked = (stream: StreamName) => only === undefined || stream === only;
  const end = Math.max(...[...record.logs].map(([stream, log]) => (isAsked(stream) ? log.end : 0)));
  if (offset > end) {
    const message = `cannot read ${only ?? "the output"} of ${record.id}: offset ${offset} is beyond its ${end} bytes`;
    throw new PicodError("OFFSET_BEYOND_END", message, { id: record.id });
  }
  return Object.fromEntries(
    [...record.logs].map(([stream, log]) => [stream, isAsked(stream) ? Math.min(offset, log.end) : log.end]),
  );
}

function toStream(record: ProcessRecord, asked: string | null): StreamName {
  const streams = [...record.logs.keys()];
  const found = streams.find((stream) => stream === (asked ?? streams[0]));
  if (found === undefined) throw invalid("stream", `${JSON.stringify(asked)} is none of ${streams.join(", ")}`);
  return found;
}

/** @throws INVALID_ARGUMENT. */
export function toOffset(text: string | null): bigint | undefined {
  if (text === null) return undefined;
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  throw invalid("offset", `${JSON.stringify(text)} is not a number of bytes`);
}
