import { isatty } from "node:tty";
import { destination, type Logger, pino } from "pino";
import type { Config } from "./config.js";

export type { Logger } from "pino";

const STDOUT = 1;
/** Lines waiting for a reader of stdout that has stalled; what comes after is dropped rather than kept in memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/**
 * Logs to stdout without ever blocking on it or dying with it. Authorization headers are not logged anywhere; the redaction is
 * for the day somebody logs a request.
 */
export async function createLogger(config: Pick<Config, "logLevel" | "logFormat">): Promise<Logger> {
  const sink = destination({ dest: STDOUT, sync: false, maxLength: MAX_BUFFERED_BYTES });
  sink.on("error", () => undefined);
  const options = {
    level: config.logLevel,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: ["authorization", "headers.authorization", "token", "accessToken"],
  };
  const pretty = config.logFormat === "pretty" || (config.logFormat === "auto" && isatty(STDOUT));
  if (!pretty) return pino(options, sink);
  // Loaded only for people: it costs more to start than the daemon.
  const { default: prettify } = await import("pino-pretty");
  return pino(options, prettify({ destination: sink, colorize: isatty(STDOUT), ignore: "pid,hostname" }));
}
