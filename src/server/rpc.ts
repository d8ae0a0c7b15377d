import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { type Call, callKey } from "../call.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";

/**
 * Runs one RPC: Node's request becomes what the RPC library takes, and its response is written with back-pressure. The library's
 * own adapter is not used: it builds a URL from the Host header (one bad header ends the process), reports to the console, and
 * waits for ever for a peer that has left (Node 26). Resolves when the answer has been handed to the kernel or the peer has gone.
 */
export async function handleRpc(
  handler: UniversalHandler,
  request: HttpRequest,
  response: HttpResponse,
  call: Call,
): Promise<void> {
  const abort = new AbortController();
  const gone = () => abort.abort(new ConnectError("the caller has gone", Code.Canceled));
  response.once("close", gone);
  // Without a listener the error of a connection that breaks would end the process.
  request.on("error", gone);
  response.on("error", gone);
  try {
    const answer = await handler({
      httpVersion: request.httpVersion,
      method: request.method ?? "",
      url: `http://picod${request.url}`,
      header: toWebHeaders(request),
      body: readBody(request, call),
      signal: abort.signal,
      contextValues: createContextValues().set(callKey, call),
    });
    await writeAnswer(answer, response, call, abort.signal);
  } finally {
    response.off("close", gone);
  }
}

async function writeAnswer(
  answer: UniversalServerResponse,
  response: HttpResponse,
  call: Call,
  abortSignal: AbortSignal,
): Promise<void> {
  const body = answer.body?.[Symbol.asyncIterator]();
  try {
    // The first message comes before the headers, which the handler may still be adding to.
    for (let next = await body?.next(); next !== undefined && !next.done; next = await body?.next()) {
      if (abortSignal.aborted) return;
      if (!response.headersSent) writeHead(answer, response);
      call.bytesOut += next.value.length;
      if (!response.write(next.value)) await drained(response, abortSignal);
    }
    if (abortSignal.aborted) return;
    if (!response.headersSent) writeHead(answer, response);
    if (answer.trailer !== undefined) response.addTrailers(Object.fromEntries(answer.trailer));
    await new Promise<void>((resolve) => {
      response.once("close", resolve);
      response.end(resolve);
    });
  } finally {
    await body?.return?.();
  }
}

function writeHead(answer: UniversalServerResponse, response: HttpResponse): void {
  response.writeHead(answer.status, answer.header === undefined ? {} : Object.fromEntries(answer.header));
}

/** Resolves when the response takes more, or nobody is there any longer to take it. */
function drained(response: HttpResponse, abortSignal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      abortSignal.removeEventListener("abort", done);
      resolve();
    };
    response.on("drain", done);
    abortSignal.addEventListener("abort", done);
    if (abortSignal.aborted) done();
  });
}

/** Ends with an error unless the peer has ended its side itself: a broken upload must never look like a whole one. */
async function* readBody(request: HttpRequest, call: Call): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      call.bytesIn += chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw new ConnectError("the caller has gone", Code.Canceled, undefined, undefined, error);
  }
  if (!request.complete) throw new ConnectError("the caller has gone", Code.Canceled);
}

function toWebHeaders(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // Names that begin with a colon are HTTP/2's own.
    if (value === undefined || name.startsWith(":")) continue;
    for (const each of Array.isArray(value) ? value : [value]) headers.append(name, each);
  }
  return headers;
}
