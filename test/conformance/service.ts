import { setTimeout as sleep } from "node:timers/promises";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  type ConformanceService,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  type StreamResponseDefinition,
  UnaryRequestSchema,
  type UnaryResponseDefinition,
} from "#conformance/connectrpc/conformance/v1/service_pb.js";
import { answerHeaders, errorAsAsked, requestInfo } from "./echo.js";

/** What the runner calls. `unimplemented` is left out: the router answers for it. */
export const conformanceService: Partial<ServiceImpl<typeof ConformanceService>> = {
  unary: (request, context) => answerOnce(request.responseDefinition, [anyPack(UnaryRequestSchema, request)], context),

  idempotentUnary: (request, context) =>
    answerOnce(request.responseDefinition, [anyPack(IdempotentUnaryRequestSchema, request)], context),

  async clientStream(requests, context) {
    let definition: UnaryResponseDefinition | undefined;
    const received: Any[] = [];
    for await (const request of requests) {
      if (received.length === 0) definition = request.responseDefinition;
      received.push(anyPack(ClientStreamRequestSchema, request));
    }
    return answerOnce(definition, received, context);
  },

  async *serverStream(request, context) {
    const { responseDefinition: definition } = request;
    answerHeaders(definition, context);
    yield* answerRest(definition, 0, [anyPack(ServerStreamRequestSchema, request)], context);
  },

  async *bidiStream(requests, context) {
    let definition: StreamResponseDefinition | undefined;
    let fullDuplex = false;
    let hasBegun = false;
    let answered = 0;
    /** Since the last answer. */
    let received: Any[] = [];
    for await (const request of requests) {
      if (!hasBegun) {
        hasBegun = true;
        ({ responseDefinition: definition, fullDuplex } = request);
        answerHeaders(definition, context);
      }
      received.push(anyPack(BidiStreamRequestSchema, request));
      if (!fullDuplex) continue;
      const data = definition?.responseData[answered];
      // A request that nothing is left for is answered with the error, if there is one.
      if (data === undefined) break;
      await delay(definition, context);
      yield { payload: { data, requestInfo: requestInfo(received, answered === 0 ? context : undefined) } };
      answered++;
      received = [];
    }
    yield* answerRest(definition, answered, received, context);
  },
};

/** Answers a call of one response. */
async function answerOnce(definition: UnaryResponseDefinition | undefined, received: readonly Any[], context: HandlerContext) {
  answerHeaders(definition, context);
  await delay(definition, context);
  const info = requestInfo(received, context);
  const response = definition?.response;
  if (response?.case === "error") throw errorAsAsked(response.value, info);
  return { payload: { data: response?.value ?? new Uint8Array(), requestInfo: info } };
}

/** What a stream still has to say when no request is waited for any longer. */
async function* answerRest(
  definition: StreamResponseDefinition | undefined,
  answered: number,
  received: readonly Any[],
  context: HandlerContext,
) {
  for (const [at, data] of definition?.responseData.entries() ?? []) {
    if (at < answered) continue;
    await delay(definition, context);
    // The requests are told about once, in the first answer.
    yield { payload: at === 0 ? { data, requestInfo: requestInfo(received, context) } : { data } };
  }
  if (definition?.error === undefined) return;
  const isFirst = answered === 0 && definition.responseData.length === 0;
  throw errorAsAsked(definition.error, isFirst ? requestInfo(received, context) : undefined);
}

/** Waits as long as the answer is to wait. @throws the reason that the call ended early for. */
async function delay(definition: { responseDelayMs: number } | undefined, { signal }: HandlerContext): Promise<void> {
  const delayMs = definition?.responseDelayMs ?? 0;
  if (delayMs === 0) return;
  await sleep(delayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
}
