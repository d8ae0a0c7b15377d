import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Code } from "@connectrpc/connect";
import type { Caller } from "./call.js";

/** Why a request goes no further. */
export interface Refusal {
  readonly code: Code;
  /** How plain HTTP names the code, where a standard says so. */
  readonly codeText?: string;
  readonly message: string;
  /** Of HTTP, for those who look at it. */
  readonly status: number;
  /** In the words of picod.v1, where there is one. */
  readonly reason?: string;
  /** What goes with the reason. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly headers?: OutgoingHttpHeaders;
  /** JSON that a contract of others prescribes, in every protocol. */
  readonly body?: object;
  /** The same, where it is plain text. */
  readonly text?: string;
}

/** Who was let in, or why nobody was. */
export type Verdict = { readonly caller: Caller } | { readonly refusal: Refusal };

/** What a realm may ask of the gate. */
export interface RealmGate {
  /** Nobody is asked for a token of the daemon's on this address. */
  readonly open: boolean;
  /** Whose a token is that did not come where the gate looks for it. Undefined: nobody's that is known there. */
  readonly identify: (token: string) => Verdict | undefined | Promise<Verdict>;
  /** What somebody who was let in before may do now. */
  readonly current: (caller: Caller) => Verdict;
}

/** Paths whose clients bring proofs of their own. All that the gate takes elsewhere is taken there too, before anybody asks the realm. */
export interface Realm {
  /** Pages of these origins, or of every one, may use these paths, and read the answers. */
  readonly crossOrigin?: "all" | readonly string[];
  readonly covers: (method: string, path: string) => boolean;
  /** Left out: nothing but what the gate takes elsewhere is taken. */
  readonly judge?: (request: IncomingMessage, gate: RealmGate) => Verdict | Promise<Verdict>;
}
