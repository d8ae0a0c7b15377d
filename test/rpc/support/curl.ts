import { execFile } from "node:child_process";
import { type Daemon, TOKEN } from "../../helpers/start-daemon.js";

export interface CurlAnswer {
  readonly exitCode: number;
  /** Of the last answer: 100 Continue is passed over. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** With `-v` what it did. */
  readonly stderr: string;
}

/** Runs curl with the token; `--path-as-is` is left to the caller. */
export function curl(daemon: Daemon, path: string, ...args: string[]): Promise<CurlAnswer> {
  const all = ["-sS", "-i", "-H", `authorization: Bearer ${TOKEN}`, ...args, daemon.url + path];
  return new Promise((resolve) => {
    execFile("curl", all, { encoding: "buffer", maxBuffer: 2 ** 30 }, (error, stdout, stderr) => {
      resolve({ exitCode: Number(error?.code ?? 0), stderr: stderr.toString(), ...parse(stdout) });
    });
  });
}

function parse(output: Buffer): Pick<CurlAnswer, "status" | "headers" | "body"> {
  const end = output.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = output.toString("latin1", 0, Math.max(0, end)).split("\r\n");
  const status = Number(statusLine.split(" ")[1]);
  const rest = output.subarray(end + 4);
  if (status === 100) return parse(rest);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  return { status, headers, body: rest };
}
