import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { PICOD } from "./start-daemon.js";

export interface Run {
  /** Exit code, or the name of the signal. */
  readonly ended: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Replaces the environment; PATH is kept. */
  readonly env?: Readonly<Record<string, string>>;
  /** Put before the command. */
  readonly wrapper?: readonly string[];
}

const TIMEOUT_MS = 15_000;

/** Runs the built program to its end: for everything but a daemon that starts. */
export async function runPicod(args: readonly string[], { env = {}, wrapper = [] }: RunOptions = {}): Promise<Run> {
  const [file = "", ...rest] = [...wrapper, PICOD, ...args];
  const { PATH = "" } = process.env;
  const child = spawn(file, rest, {
    env: { PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const [[code, signal], stdout, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { ended: code ?? signal, stdout, stderr };
}

/** Runs a program as nobody, who can read what everybody can. */
export const AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] as const;

/** Runs a program that sees the files of `directory` in /etc (`picod/token`); nothing changes for the rest of the machine. */
export function withEtc(directory: string): readonly string[] {
  const script = 'mount -t overlay -o "lowerdir=$1:/etc" overlay /etc && shift && exec "$@"';
  return ["unshare", "--mount", "sh", "-c", script, "sh", directory];
}
