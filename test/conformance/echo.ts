import { create } from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import {
  type ConformancePayload_RequestInfo,
  ConformancePayload_RequestInfoSchema,
  type Error as ErrorDefinition,
  type Header,
} from "#conformance/connectrpc/conformance/v1/service_pb.js";

/** What the server saw of a call: its requests and, given the context, its headers and what is left of its time. */
export function requestInfo(requests: readonly Any[], context: HandlerContext | undefined): ConformancePayload_RequestInfo {
  const timeoutMs = context?.timeoutMs();
  return create(ConformancePayload_RequestInfoSchema, {
    requests: [...requests],
    requestHeaders: [...(context?.requestHeader ?? [])].map(([name, value]) => ({ name, value: value.split(/,\s*/) })),
    ...(timeoutMs === undefined ? {} : { timeoutMs: BigInt(Math.round(timeoutMs)) }),
  });
}

/** Sets the headers and trailers that an answer is to have. */
export function answerHeaders(
  definition: { responseHeaders: Header[]; responseTrailers: Header[] } | undefined,
  { responseHeader, responseTrailer }: HandlerContext,
): void {
  for (const [target, headers] of [
    [responseHeader, definition?.responseHeaders],
    [responseTrailer, definition?.responseTrailers],
  ] as const) {
    for (const { name, value } of headers ?? []) for (const each of value) target.append(name, each);
  }
}

/** The error that an answer is to be; when it is the first of a call, it carries what the server saw. */
export function errorAsAsked(definition: ErrorDefinition, info: ConformancePayload_RequestInfo | undefined): ConnectError {
  const error = new ConnectError(definition.message ?? "", definition.code as number);
  const details = info === undefined ? [] : [anyPack(ConformancePayload_RequestInfoSchema, info)];
  // Packed already: of a type that only the runner knows they could not be packed here.
  error.details = [...definition.details, ...details].map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return error;
}
