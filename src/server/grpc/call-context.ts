import type { IncomingHttpHeaders } from "node:http2";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues, type HandlerContext } from "@connectrpc/connect";
import { type Call, callKey } from "../../call.js";
import { toHandlerHeaders } from "./headers.js";

/**
 * One call, as interceptors (`message`, `header`, `contextValues`) and handlers (`requestHeader`, `values`) see it. What hardly any
 * of them asks for is made when one does.
 */
export class CallContext implements HandlerContext {
  readonly protocolName = "grpc";
  readonly requestMethod = "POST";
  readonly method: DescMethod;
  readonly url: string;
  readonly signal: AbortSignal;
  readonly values: ContextValues;
  /** Of an RPC that streams in one direction or both: an iterable. */
  message: unknown;
  readonly stream: boolean;
  readonly requestHeader: Headers;
  readonly answer: AnswerHeaders;
  readonly deadline: number | undefined;

  /** @param timeoutMs from now on; undefined: as long as it takes. */
  constructor(method: DescMethod, headers: IncomingHttpHeaders, call: Call, signal: AbortSignal, timeoutMs?: number) {
    this.method = method;
    this.url = `http://picod${headers[":path"]}`;
    this.signal = signal;
    this.values = createContextValues().set(callKey, call);
    this.stream = method.methodKind !== "unary";
    this.requestHeader = toHandlerHeaders(headers);
    this.answer = new AnswerHeaders();
    this.deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  }

  get service(): DescService {
    return this.method.parent;
  }

  get contextValues(): ContextValues {
    return this.values;
  }

  get header(): Headers {
    return this.requestHeader;
  }

  get responseHeader(): Headers {
    return this.answer.header;
  }

  get responseTrailer(): Headers {
    return this.answer.trailer;
  }

  get timeoutMs(): () => number | undefined {
    const { deadline } = this;
    return () => (deadline === undefined ? undefined : deadline - Date.now());
  }
}

/** What a handler adds to its answer; most add nothing. */
export class AnswerHeaders {
  #header: Headers | undefined;
  #trailer: Headers | undefined;

  get header(): Headers {
    this.#header ??= new Headers();
    return this.#header;
  }

  get trailer(): Headers {
    this.#trailer ??= new Headers();
    return this.#trailer;
  }

  get hasHeader(): boolean {
    return this.#header !== undefined;
  }

  get hasTrailer(): boolean {
    return this.#trailer !== undefined;
  }

  get headerFields(): Record<string, string> {
    return this.#header === undefined ? {} : Object.fromEntries(this.#header);
  }

  get trailerFields(): Record<string, string> {
    return this.#trailer === undefined ? {} : Object.fromEntries(this.#trailer);
  }
}
