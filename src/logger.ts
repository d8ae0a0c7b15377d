import { isatty } from "node:tty";
import { type Logger, pino } from "pino";
import type { Config } from "./config.js";

export type { Logger } from "pino";

/** Where lines may go. */
export type LogOutput = typeof process.stdout | typeof process.stderr;

/** Lines waiting for a reader that has stalled; what comes after is dropped rather than kept in memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/** Where a secret would stand in what is likely to be logged one day. Paths with wildcards would cost as much as the line itself. */
const SECRETS = ["authorization", "token", "accessToken", "access_token"].flatMap((name) =>
  ["", "headers.", "request.", "request.headers.", "req.headers.", "config.", "query."].map((holder) => `${holder}${name}`),
);

/**
 * Logs to stdout without ever waiting for its reader or dying with it. Authorization headers are not logged anywhere; the
 * redaction is for the day somebody logs a request.
 */
export async function createLogger(
  config: Pick<Config, "logLevel" | "logFormat">,
  output: LogOutput = process.stdout,
): Promise<Logger> {
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: SECRETS,
  };
  const pretty = config.logFormat === "pretty" || (config.logFormat === "auto" && isatty(output.fd));
  const format = pretty ? await createPrettyFormat(output) : (line: string) => line;
  return pino(options, { write: (line) => writeUnlessStalled(output, format(line)) });
}

/**
 * A pipe that has room gets the line at once, also right before an exit. The stream's errors (EPIPE when the reader has gone, ENOSPC)
 * are swallowed by main.ts, and it stays usable.
 */
function writeUnlessStalled(output: LogOutput, text: string): void {
  if (output.writableLength < MAX_BUFFERED_BYTES) output.write(text);
}

/** Loaded only for people: it costs more to start than the daemon. */
async function createPrettyFormat(output: LogOutput): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  return prettyFactory({ colorize: isatty(output.fd), ignore: "pid,hostname" });
}
