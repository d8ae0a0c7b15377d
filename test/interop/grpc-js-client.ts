import { Client, compressionAlgorithms, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { RpcAnswer, RpcCall, RpcClient } from "./rpc-client.js";

/** Of a call in any of its four shapes. */
interface Running {
  cancel(): void;
}

/** Makes calls with grpc-js. @param address `127.0.0.1:49983`. */
export function connectGrpcJs(address: string): RpcClient {
  const plain = new Client(address, credentials.createInsecure());
  // What it sends is compressed by channel, not by call.
  const compressing = new Client(address, credentials.createInsecure(), {
    "grpc.default_compression_algorithm": compressionAlgorithms.gzip,
  });
  return {
    async call(call, cancelSignal) {
      const responses: Buffer[] = [];
      const onRunning = (running: Running) => cancelSignal?.addEventListener("abort", () => running.cancel(), { once: true });
      try {
        await run(call.gzip ? compressing : plain, call, (response) => responses.push(response), onRunning);
      } catch (error) {
        return toAnswer(error as ServiceError, responses);
      }
      return { responses, code: status.OK, message: "", status: undefined };
    },
    async [Symbol.asyncDispose]() {
      plain.close();
      compressing.close();
    },
  };
}

async function run(
  client: Client,
  { procedure, kind, requests, token, deadlineMs }: RpcCall,
  onResponse: (response: Buffer) => void,
  onRunning: (running: Running) => void,
): Promise<void> {
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const [first = Buffer.alloc(0)] = requests.map((request) => Buffer.from(request));
  if (kind === "unary" || kind === "client_streaming") {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const done = (error: ServiceError | null, response?: Buffer) =>
      error === null && response ? resolve(response) : reject(error);
    if (kind === "unary") onRunning(client.makeUnaryRequest(procedure, asIs, asIs, first, metadata, options, done));
    else {
      const call = client.makeClientStreamRequest(procedure, asIs, asIs, metadata, options, done);
      onRunning(call);
      for (const request of requests) call.write(Buffer.from(request));
      call.end();
    }
    onResponse(await promise);
  } else if (kind === "server_streaming") {
    const call = client.makeServerStreamRequest(procedure, asIs, asIs, first, metadata, options);
    onRunning(call);
    for await (const response of call) onResponse(response);
  } else {
    const call = client.makeBidiStreamRequest(procedure, asIs, asIs, metadata, options);
    onRunning(call);
    const waiting = requests.map((request) => Buffer.from(request));
    const sendNext = () => {
      const next = waiting.shift();
      if (next === undefined) call.end();
      else call.write(next);
    };
    sendNext();
    for await (const response of call) {
      onResponse(response);
      sendNext();
    }
  }
}

function toAnswer({ code, details, metadata }: ServiceError, responses: readonly Buffer[]): RpcAnswer {
  const [encoded] = metadata.get("grpc-status-details-bin");
  return { responses, code, message: details, status: encoded === undefined ? undefined : Buffer.from(encoded) };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
