import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type Call, newCall } from "../call.js";
import { passOn } from "../trace.js";
import type { HttpRequest } from "./http-types.js";

/** setTimeout treats a longer delay as 1 ms. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const VALID_REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const MS_OF_GRPC_UNIT: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Begins a call and makes its request harmless for what comes behind. */
export function beginCall(request: HttpRequest): Call {
  dropEndlessTimeouts(request.headers);
  const given = request.headers["x-request-id"]?.toString() ?? "";
  const requestId = VALID_REQUEST_ID.test(given) ? given : randomUUID();
  return newCall(requestId, request.socket.remoteAddress ?? "", passOn(request.headers));
}

/** The path of a request, or undefined when its target is not one (`*`, an authority, an absolute URL). */
export function pathOf(request: HttpRequest): string | undefined {
  const target = request.url ?? "";
  if (!target.startsWith("/")) return undefined;
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** A deadline beyond what a timer can wait for is no deadline. Malformed ones are left for the protocol to refuse. */
function dropEndlessTimeouts(headers: IncomingHttpHeaders): void {
  const connect = headers["connect-timeout-ms"]?.toString() ?? "";
  if (/^\d+$/.test(connect) && Number(connect) > MAX_TIMEOUT_MS) delete headers["connect-timeout-ms"];
  const [, amount, unit = ""] = /^(\d+)([HMSmun])$/.exec(headers["grpc-timeout"]?.toString() ?? "") ?? [];
  if (Number(amount) * (MS_OF_GRPC_UNIT[unit] ?? 0) > MAX_TIMEOUT_MS) delete headers["grpc-timeout"];
}
