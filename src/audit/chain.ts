import { createHash } from "node:crypto";

/** What the next line is chained to. */
export interface Head {
  /** Of the last line, counted from 1 over all files. */
  readonly seq: number;
  /** SHA-256 of the last line, in hex. */
  readonly hash: string;
}

/** What the first line of all is chained to. */
export const BEGINNING: Head = { seq: 0, hash: "0".repeat(64) };

/** What a line says about its place in the chain. */
export interface Link extends Head {
  /** Hash of the line before. */
  readonly prev: string;
  /** Whether the line is what its hash was made of. */
  readonly isIntact: boolean;
}

const LINK = /,"seq":([1-9]\d{0,15}),"prev":"([0-9a-f]{64})"(,"hash":"([0-9a-f]{64})"\})$/;
const MAX_LINK_LENGTH = 200;

/** A JSON object as the next line of the chain, which ends with its number, the hash of the line before, and its own. */
export function chain(record: string, { seq, hash: prev }: Head): { readonly line: string; readonly head: Head } {
  const hashed = `${record.slice(0, -1)},"seq":${seq + 1},"prev":"${prev}"`;
  const hash = sha256(hashed);
  return { line: `${hashed},"hash":"${hash}"}\n`, head: { seq: seq + 1, hash } };
}

/** Of a line without its end; undefined for one that is not of a chain. */
export function readLink(line: Buffer): Link | undefined {
  const match = LINK.exec(line.toString("latin1", Math.max(0, line.length - MAX_LINK_LENGTH)));
  if (match === null) return undefined;
  const [, seq, prev = "", last = "", hash = ""] = match;
  return { seq: Number(seq), prev, hash, isIntact: sha256(line.subarray(0, line.length - last.length)) === hash };
}

/** In hex. */
function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
