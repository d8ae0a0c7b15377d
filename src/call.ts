import { createContextKey } from "@connectrpc/connect";

/** Who let a request in: nobody needed to, a token or a signed URL did, or the daemon runs without tokens. */
export type Authorization = "public" | "token" | "signature" | "insecure";

/** What is known about one request on its way from the listener to its end. */
export interface Call {
  readonly requestId: string;
  /** Address of the caller's end of the connection. */
  readonly peer: string;
  /** On the clock of performance.now(). */
  readonly startedAt: number;
  /** Set by the gate; undefined means that the request went past it. */
  authorization: Authorization | undefined;
  /** Set when all that the caller had announced has arrived: then the end of its stream needs no proof. */
  hasArrived: boolean;
  /** Payload bytes, framing included. */
  bytesIn: number;
  bytesOut: number;
  /** `/picod.v1.ProcessService/Execute`, or method and route of plain HTTP. */
  procedure: string;
  /** Code of the answer ("ok", "not_found"), once known. */
  code: string | undefined;
  /** What is behind an internal error, for the log. */
  cause: unknown;
  /** The process that the call was about. */
  processId: string | undefined;
}

/** Carries the Call through the RPC library to interceptors and façades. */
export const callKey = createContextKey<Call>(
  {
    requestId: "",
    peer: "",
    startedAt: 0,
    authorization: undefined,
    hasArrived: false,
    bytesIn: 0,
    bytesOut: 0,
    procedure: "",
    code: undefined,
    cause: undefined,
    processId: undefined,
  },
  { description: "the call as the listener saw it" },
);
