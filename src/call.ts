import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { ALL_SCOPES, NO_SCOPES, type Scope } from "./auth/scopes.js";
import type { Capability } from "./policy/capability.js";
import { type Span, UNTRACED } from "./trace.js";

/**
 * What let a request in: a token, a JWT, a client's certificate, a ticket or a signed URL that somebody with one of those was given,
 * nothing because the path is everybody's, nothing because the daemon runs without tokens on that address, or having started the program.
 */
export type HowKnown = "token" | "jwt" | "certificate" | "ticket" | "signature" | "public" | "insecure" | "local";

/** Who called. Shared by calls: nobody changes one. */
export interface Caller {
  /** For the log: never a token. */
  readonly name: string;
  readonly how: HowKnown;
  readonly scopes: ReadonlySet<Scope>;
  /** What its file operations are confined to; undefined: nothing but `--root`. */
  readonly pathPrefixes?: readonly string[];
  /** Which capability the policy is to grant it, as whoever lets it in has it; undefined: none, or the one that the policy itself names. */
  readonly capabilityName?: string;
  /** What the policy grants it; undefined: nothing where a policy is in force, and where none is, whatever its scopes say. */
  readonly capability?: Capability;
  /** When what it has shown ends, in milliseconds since 1970; undefined: never. */
  readonly expiresAtMs?: number;
}

/** Whoever has the daemon's own token. */
export const DAEMON_TOKEN: Caller = { name: "daemon", how: "token", scopes: ALL_SCOPES };
export function isDaemonToken({ name, how }: Pick<Caller, "name" | "how">): boolean {
  return name === DAEMON_TOKEN.name && how === DAEMON_TOKEN.how;
}

export const ANYBODY: Caller = { name: "anonymous", how: "public", scopes: NO_SCOPES };
export const ANYBODY_INSECURELY: Caller = { name: "anonymous", how: "insecure", scopes: ALL_SCOPES };

/** Whoever has started `picod mcp`, and has its standard streams. */
export const LOCAL_USER: Caller = { name: "local", how: "local", scopes: ALL_SCOPES };

/** What a call is about, as its caller named it: for the audit log. */
export interface CallSubject {
  readonly paths: readonly string[];
  /** A line for the shell, or a program with its arguments. */
  readonly command: string | readonly string[] | undefined;
  /** Whom it asked to act as; undefined: nobody in particular. */
  readonly user: string | undefined;
}

/** What the policy has refused to a call. */
export interface Denial {
  /** Undefined: the caller has none. */
  readonly capability: string | undefined;
  readonly permission: string;
  /** The path, the command, or whatever else it was about; empty when it was about the call itself. */
  readonly subject: string;
}

/** What is known about one request on its way from the listener to its end. */
export interface Call {
  readonly requestId: string;
  /** Address of the caller's end of the connection. */
  readonly peer: string;
  /** On the clock of performance.now(). */
  readonly startedAt: number;
  /** Set by the gate; undefined means that the request went past it. */
  caller: Caller | undefined;
  /** Set when all that the caller had announced has arrived: then the end of its stream needs no proof. */
  hasArrived: boolean;
  /** Set by a handler that is done with each message of its caller when it asks for the next: then their memory is used again. */
  reusesMessages: boolean;
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
  subject: CallSubject | undefined;
  /** The first thing that the policy has refused to it. */
  denial: Denial | undefined;
  /** What it is a part of; once the gate has let it in, its own part. */
  trace: Span;
}

/** One that has just arrived. */
export function newCall(requestId: string, peer: string, trace: Span, startedAt = performance.now()): Call {
  return {
    requestId,
    peer,
    startedAt,
    caller: undefined,
    hasArrived: false,
    reusesMessages: false,
    bytesIn: 0,
    bytesOut: 0,
    procedure: "",
    code: undefined,
    cause: undefined,
    processId: undefined,
    subject: undefined,
    denial: undefined,
    trace,
  };
}

/** Carries the Call through the RPC library to interceptors and façades. */
export const callKey = createContextKey<Call>(newCall("", "", UNTRACED, 0), { description: "the call as the listener saw it" });

/** Who has made the call that a handler answers. */
export function callerOf({ values }: { readonly values: ContextValues }): Caller | undefined {
  return values.get(callKey).caller;
}
