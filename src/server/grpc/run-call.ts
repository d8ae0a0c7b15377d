import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import type { Call } from "../../call.js";
import { codeName } from "../../errors/code-name.js";
import type { TransientMap } from "../../transient-map.js";
import { endCall } from "../end-call.js";
import type { RequestHandling } from "../gate.js";
import { INSTANCE_HEADER } from "../instance.js";
import { LINGER_MS } from "../limits.js";
import { AnswerWriter } from "./answer-writer.js";
import { CallContext } from "./call-context.js";
import { MessageReader } from "./message-reader.js";
import type { GrpcMethod } from "./methods.js";
import { onlyMessage } from "./only-message.js";

/** Ends a call early, with the reason that its handler is told. */
export type CallEnder = (reason: unknown) => void;

/** Runs one call from its first message to its last. Never rejects: no request may end the process. */
export async function runCall(
  handling: RequestHandling,
  running: TransientMap<Call, CallEnder>,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  call: Call,
  method: GrpcMethod,
): Promise<void> {
  const { methodKind, input, output } = method.descriptor;
  const controller = new AbortController();
  const sendsOneMessage = methodKind === "unary" || methodKind === "server_streaming";
  const limits = { maxBytes: method.readMaxBytes, sendsOneMessage };
  const messages = new MessageReader(stream, input, call, controller.signal, limits);
  const end: CallEnder = (reason) => {
    controller.abort(reason);
    messages.wake();
  };
  const { timeoutMs, error: invalidTimeout } = parseTimeout(headers["grpc-timeout"]?.toString() ?? null, Number.MAX_SAFE_INTEGER);
  const timedOut = () => end(new ConnectError("the operation timed out", Code.DeadlineExceeded));
  const deadline = timeoutMs === undefined ? undefined : setTimeout(timedOut, timeoutMs);
  const context = new CallContext(method.descriptor, headers, call, controller.signal, timeoutMs);
  const writer = new AnswerWriter(stream, answerHeaders(headers, call, handling.instanceId), output, call, context.answer);
  const gone = () => {
    if (running.has(call)) end(new ConnectError("the caller has gone", Code.Canceled));
    writer.closed();
  };
  running.set(call, end);
  // Without a listener the errors of a connection that breaks would end the process.
  stream.on("error", ignore).once("close", gone);
  let error: ConnectError | undefined;
  try {
    if (invalidTimeout !== undefined) throw invalidTimeout;
    context.message = methodKind === "unary" ? await onlyMessage(messages, "unary") : messages;
    const reply = await method.invoke(context);
    if (!reply.stream) writer.prepareLast(reply.message);
    else {
      for await (const message of reply.message) {
        await writer.write(message);
        // A handler that does not look itself would go on for nobody.
        controller.signal.throwIfAborted();
      }
    }
  } catch (thrown) {
    error = ConnectError.from(thrown, Code.Internal);
  }
  clearTimeout(deadline);
  running.delete(call);
  call.code ??= error === undefined ? "ok" : codeName(error.code);
  call.cause ??= error?.cause;
  messages.discard();
  await writer.end(error).catch((fault: unknown) => {
    call.code = codeName(Code.Internal);
    call.cause = fault;
    stream.destroy();
  });
  // Who goes on sending after the answer is given a moment to see it.
  if (!stream.closed && !stream.readableEnded) {
    const timer = setTimeout(() => stream.close(), LINGER_MS);
    stream.once("close", () => clearTimeout(timer));
  }
  endCall(handling, call);
}

function answerHeaders(headers: IncomingHttpHeaders, { requestId }: Call, instanceId: string) {
  return { ":status": 200, "content-type": headers["content-type"], "x-request-id": requestId, [INSTANCE_HEADER]: instanceId };
}

function ignore(): void {}
