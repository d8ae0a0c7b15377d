import { create, type DescMethod, fromBinary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { TOKEN } from "../helpers/start-daemon.js";

/** A call as it is given to a client: messages are made and looked at in one place, for all of them. */
export interface RpcCall {
  /** `/picod.v1.ProcessService/Execute`. */
  readonly procedure: string;
  readonly kind: DescMethod["methodKind"];
  /** A bidirectional call sends the next one when it has an answer to the one before. */
  readonly requests: readonly Uint8Array[];
  /** Undefined: none. */
  readonly token: string | undefined;
  readonly deadlineMs: number | undefined;
  /** Compresses what it sends. */
  readonly gzip: boolean;
}

/** How a call ended. */
export interface RpcAnswer {
  readonly responses: readonly Uint8Array[];
  /** Numbers of gRPC; 0 is success. */
  readonly code: number;
  readonly message: string;
  /** google.rpc.Status, when the error had details. */
  readonly status: Uint8Array | undefined;
}

/** A client library with one connection. Use with `await using`. */
export interface RpcClient extends AsyncDisposable {
  call(call: RpcCall, cancelSignal?: AbortSignal): Promise<RpcAnswer>;
}

export interface InvokeOptions {
  /** Undefined: TOKEN; null: none. */
  readonly token?: string | null;
  readonly deadlineMs?: number;
  readonly gzip?: boolean;
  readonly cancelSignal?: AbortSignal;
}

export interface Outcome<Method extends DescMethod> {
  readonly responses: readonly MessageShape<Method["output"]>[];
  readonly error: ConnectError | undefined;
}

/** Calls a method and decodes what comes back. */
export async function invoke<Method extends DescMethod>(
  client: RpcClient,
  method: Method,
  requests: readonly MessageInitShape<Method["input"]>[],
  { token = TOKEN, deadlineMs, gzip = false, cancelSignal }: InvokeOptions = {},
): Promise<Outcome<Method>> {
  const call = {
    procedure: `/${method.parent.typeName}/${method.name}`,
    kind: method.methodKind,
    requests: requests.map((init) => toBinary<Method["input"]>(method.input, create<Method["input"]>(method.input, init))),
    token: token ?? undefined,
    deadlineMs,
    gzip,
  };
  const answer = await client.call(call, cancelSignal);
  const responses = answer.responses.map((bytes) => fromBinary<Method["output"]>(method.output, bytes));
  return { responses, error: errorOf(answer) };
}

function errorOf({ code, message, status }: RpcAnswer): ConnectError | undefined {
  if (code === 0) return undefined;
  const error = new ConnectError(message, code);
  const encoded = status === undefined ? "" : Buffer.from(status).toString("base64");
  const trailer = new Headers({ "grpc-status": String(code), "grpc-status-details-bin": encoded });
  error.details = encoded === "" ? [] : (findTrailerError(trailer)?.details ?? []);
  return error;
}
