import { createHash } from "node:crypto";

/** One process of the soak: how it is started, what is done to it, and what must have come of it. */
export interface Job {
  readonly id: string;
  readonly command: string;
  readonly pty: boolean;
  /** Typed at it; it ends at end of file. */
  readonly input: string | undefined;
  readonly timeout: number;
  /** Done to it while it runs. */
  readonly act: { readonly signal: string } | { readonly stop: true } | undefined;
  readonly reason: "EXITED" | "SIGNALED" | "CANCELLED" | "TIMED_OUT";
  /** Of its whole output; undefined when it is ended somewhere in the middle. */
  readonly sha256: string | undefined;
}

export interface JobResult {
  readonly id: string;
  readonly bytes: number;
  readonly trimmed: number;
  readonly sha256: string;
  readonly reason: string;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Deterministic for a seed, so that a soak can be repeated. */
export function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Smaller than what is kept of a stream: a reader that was killed has all of it again. */
const MAX_LINES = 8_000;

export function createJob(id: string, random: (below: number) => number): Job {
  const base = { id, pty: false, input: undefined, timeout: 0, act: undefined, reason: "EXITED" as const };
  const kind = random(8);
  if (kind <= 2) {
    const count = 1 + random(MAX_LINES);
    const pause = random(2) === 0 ? `[ $((i % 500)) = 0 ] && sleep 0.05;` : "";
    const pty = kind === 2;
    const newline = pty ? "\r\n" : "\n";
    const all = Array.from({ length: count }, (_, index) => `${id} says line ${index}${newline}`).join("");
    const command = `i=0; while [ $i -lt ${count} ]; do echo ${id} says line $i; ${pause} i=$((i+1)); done`;
    return { ...base, pty, command, sha256: sha256(all) };
  }
  if (kind === 3) {
    const input = Array.from({ length: 1 + random(4_000) }, (_, index) => `typed ${index}\n`).join("");
    return { ...base, command: "exec cat", input, sha256: sha256(input) };
  }
  if (kind === 4) {
    const command = "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'sleep 0.1; true' > /dev/null 2>&1 &); done; echo forked";
    return { ...base, command, sha256: sha256("forked\n") };
  }
  if (kind === 5) {
    const signal = ["TERM", "KILL", "INT", "USR1"][random(4)] ?? "TERM";
    return { ...base, command: "echo up; exec sleep 1000", act: { signal }, reason: "SIGNALED", sha256: sha256("up\n") };
  }
  if (kind === 6) {
    const command = "setsid sleep 1000 & trap '' TERM; while :; do echo on and on; sleep 0.01; done";
    return { ...base, command, act: { stop: true }, reason: "CANCELLED", sha256: undefined };
  }
  return { ...base, command: "echo up; exec sleep 1000", timeout: 0.3, reason: "TIMED_OUT", sha256: sha256("up\n") };
}
