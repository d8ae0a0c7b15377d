import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { isPublicPath } from "../auth/public-paths.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import type { Call } from "../call.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { writeAccessLine } from "./access-log.js";
import { refuse } from "./answer.js";
import { beginCall, pathOf } from "./guard.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import type { PlainRoute } from "./plain-routes.js";
import { handleRpc } from "./rpc.js";

export interface RequestHandling {
  readonly rpcs: ReadonlyMap<string, UniversalHandler>;
  readonly plainRoutes: ReadonlyMap<string, PlainRoute>;
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  readonly metricsPublic: boolean;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export type RequestHandler = (request: HttpRequest, response: HttpResponse) => Promise<void>;

/** The way of every request: guard → gate → route. Never rejects: no request may end the process. */
export function createRequestHandler(handling: RequestHandling): RequestHandler {
  return async (request, response) => {
    const call = beginCall(request);
    response.setHeader("x-request-id", call.requestId);
    try {
      const refusal = judge(handling, request, call) ?? (await route(handling, request, response, call));
      if (refusal !== undefined) {
        const [code, message] = refusal;
        call.code = Code[code].toLowerCase();
        handling.metrics.requestRefused(refuse(request, response, code, message));
      }
    } catch (error) {
      call.code = "internal";
      call.cause = error;
      refuse(request, response, Code.Internal, `internal error (request id ${call.requestId})`);
      response.destroy();
    }
    handling.metrics.transferred(call.bytesIn, call.bytesOut);
    writeAccessLine(handling.logger, call);
  };
}

type Refusal = [code: Code, message: string];

/** The gate: nothing of the body has been read yet. */
function judge(handling: RequestHandling, request: HttpRequest, call: Call): Refusal | undefined {
  const path = pathOf(request);
  if (path === undefined) return [Code.InvalidArgument, "invalid request target"];
  call.procedure = path;
  if (isPublicPath(path, handling.metricsPublic)) call.authorization = "public";
  else if (handling.verifier === undefined) call.authorization = "insecure";
  else if (handling.verifier.verify(request.headers.authorization)) call.authorization = "token";
  else return [Code.Unauthenticated, "missing or wrong access token: expected the header Authorization: Bearer <token>"];
  return undefined;
}

async function route(
  handling: RequestHandling,
  request: HttpRequest,
  response: HttpResponse,
  call: Call,
): Promise<Refusal | undefined> {
  if (request.headers.expect?.toString().toLowerCase() === "100-continue") response.writeContinue();
  const rpc = handling.rpcs.get(call.procedure);
  if (rpc !== undefined) {
    await handleRpc(rpc, request, response, call);
    return undefined;
  }
  const plain = handling.plainRoutes.get(call.procedure);
  if (plain === undefined) return [Code.NotFound, `no such procedure or path: ${call.procedure.slice(0, 200)}`];
  if (request.method !== "GET" && request.method !== "HEAD") return [Code.Unimplemented, `${call.procedure} takes GET and HEAD`];
  await plain(request, response);
  call.code = "ok";
  return undefined;
}
