import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { createServiceImplSpec, type Interceptor, type MethodImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { createMethodUrl } from "@connectrpc/connect/protocol";
import type { CallContext } from "./call-context.js";
import { onlyMessage } from "./only-message.js";

type Next = Parameters<Interceptor>[0];

/** What comes back through the interceptors: one message, or a stream of them. */
export type Reply =
  | { readonly stream: false; readonly message: object }
  | { readonly stream: true; readonly message: AsyncIterable<object> };

/** An RPC behind its interceptors, which are composed once instead of for every call. */
export interface GrpcMethod {
  readonly descriptor: DescMethod;
  /** Of one message of the caller. */
  readonly readMaxBytes: number;
  readonly invoke: (context: CallContext) => Promise<Reply>;
}

/** The methods of a service, by path. */
export function grpcMethodsOf<T extends DescService>(
  service: T,
  implementation: Partial<ServiceImpl<T>>,
  interceptors: readonly Interceptor[],
  readMaxBytes: number,
): [path: string, method: GrpcMethod][] {
  return Object.values(createServiceImplSpec(service, implementation).methods).map((spec) => {
    // A CallContext is the request that interceptors expect; its type cannot say which kind of message it carries.
    const handle = handlerOf(spec) as unknown as Next;
    const invoke = interceptors.reduceRight((next, intercept) => intercept(next), handle) as unknown as GrpcMethod["invoke"];
    return [createMethodUrl("/", spec.method), { descriptor: spec.method, readMaxBytes, invoke }];
  });
}

function handlerOf(spec: MethodImplSpec): GrpcMethod["invoke"] {
  switch (spec.kind) {
    case "unary":
      return async (context) => ({ stream: false, message: await spec.impl(context.message as never, context) });
    case "server_streaming":
      return async (context) => {
        const message = await onlyMessage(context.message as AsyncIterable<never>, "server-streaming");
        return { stream: true, message: spec.impl(message, context) };
      };
    case "client_streaming":
      return async (context) => ({ stream: true, message: each(await spec.impl(context.message as never, context)) });
    case "bidi_streaming":
      return async (context) => ({ stream: true, message: spec.impl(context.message as never, context) });
  }
}

async function* each<T>(message: T): AsyncGenerator<T> {
  yield message;
}
