import type { Protocol } from "../helpers/clients.js";

export const KINDS = ["exec", "upload", "download", "attach"] as const;
export type Kind = (typeof KINDS)[number];

/** What a process of clients is told. */
export interface Orders {
  readonly url: string;
  /** Where it keeps its files. */
  readonly directory: string;
  readonly seed: number;
  readonly clients: number;
  /** Of no other process, before or after it. */
  readonly name: string;
  /** Client number n speaks the nth of them, round and round. */
  readonly protocols: readonly Protocol[];
  readonly kinds: readonly Kind[];
  readonly maxFileBytes: number;
}

/** What it says of each operation, a line of JSON each. */
export type Message =
  | { readonly type: "done"; readonly client: string; readonly kind: Kind; readonly ms: number; readonly bytes: number }
  /** A file that the daemon said it has. */
  | { readonly type: "stored"; readonly name: string }
  /** From now on nobody relies on it. */
  | { readonly type: "removing"; readonly name: string }
  /** `code` of the daemon's answer; "connection" where there was none. */
  | { readonly type: "failed"; readonly kind: Kind; readonly code: string; readonly message: string }
  /** The daemon said that something had succeeded, and it had not. */
  | { readonly type: "wrong"; readonly what: string };
