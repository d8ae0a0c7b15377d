import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { AuditLog } from "./audit/audit-log.js";
import type { Logger } from "./logger.js";
import type { Readiness } from "./readiness.js";
import type { Sandbox } from "./sandbox.js";
import type { Server } from "./server/create-server.js";
import type { Tracer } from "./telemetry/tracer.js";

export interface ShutdownParts {
  /** What is left out there is nothing to wait for, or to close. */
  readonly server: Pick<Server, "abortCalls"> & Partial<Pick<Server, "stopAccepting" | "idle" | "closed" | "destroy">>;
  readonly sandbox: {
    readonly processes: Pick<Sandbox["processes"], "close" | "killAll">;
    readonly registry: Pick<Sandbox["registry"], "close">;
    readonly executions: Pick<Sandbox["executions"], "close">;
    readonly uploads: Pick<Sandbox["uploads"], "close">;
    readonly histories: Pick<Sandbox["histories"], "close">;
    readonly watches: Pick<Sandbox["watches"], "close">;
    readonly confinement: Pick<Sandbox["confinement"], "close">;
  };
  readonly readiness: Readiness;
  readonly logger: Logger;
  readonly audit: Pick<AuditLog, "note" | "close" | "flushNow"> | undefined;
  readonly tracer: Pick<Tracer, "close"> | undefined;
  /** For calls in progress. */
  readonly graceMs: number;
  /** Between TERM and KILL for commands. */
  readonly killGraceMs: number;
}

/** After the calls were told, so long their answers may take to leave. */
const LAST_ANSWERS_MS = 1_000;
/** The same, for who is in a hurry. */
const FAREWELL_MS = 250;
/** So long commands may take to obey a KILL; one that hangs in the kernel would hold the daemon for ever. */
const LAST_COMMANDS_MS = 3_000;
/** So long the disk may take for the last lines of the audit log, and the collector for the last spans. */
const LAST_RECORDS_MS = 2_000;
const STDERR = 2;

/**
 * Ends the daemon in order: no new calls, and UNAVAILABLE at once for those that follow something; the others in progress get
 * `graceMs`, then UNAVAILABLE; what runs is ended; then the connections are closed.
 */
export async function shutDown(parts: ShutdownParts): Promise<void> {
  const { server, sandbox, readiness, logger, audit, tracer, graceMs, killGraceMs } = parts;
  readiness.stop();
  server.stopAccepting?.();
  const idle = server.idle?.().then(() => true) ?? true;
  const finished = await Promise.race([idle, sleep(graceMs, false)]);
  if (!finished) logger.warn({ graceMs }, "calls still in progress are ended");
  server.abortCalls();
  const ended = await Promise.race([sandbox.processes.close().then(() => true), sleep(killGraceMs + LAST_COMMANDS_MS, false)]);
  if (!ended) logger.error("commands are left that do not obey KILL");
  sandbox.registry.close();
  sandbox.executions.close();
  sandbox.confinement.close();
  sandbox.uploads.close();
  sandbox.histories.close();
  sandbox.watches.close();
  await answersHaveLeft(server, LAST_ANSWERS_MS);
  server.destroy?.();
  audit?.note({ event: "stopped" });
  // A collector that says no has been counted and logged.
  const told = Promise.allSettled([audit?.close(), tracer?.close()]);
  await Promise.race([told, sleep(LAST_RECORDS_MS)]);
}

async function answersHaveLeft(server: ShutdownParts["server"], timeoutMs: number): Promise<void> {
  const left = async () => {
    await server.idle?.();
    await server.closed?.();
  };
  await Promise.race([left(), sleep(timeoutMs)]);
}

/**
 * Lets TERM and INT end a daemon that is starting: as PID 1 it would not notice them. Returns the function that takes this back.
 */
export function exitOnSignals(): () => void {
  const exit = (_signal: NodeJS.Signals, number: number) => process.exit(128 + number);
  process.on("SIGTERM", exit).on("SIGINT", exit);
  return () => process.off("SIGTERM", exit).off("SIGINT", exit);
}

/**
 * Runs `shutDown` on the first TERM or INT and exits with 0 when it is done. A second signal ends everything at once, with the
 * exit code of a process that it killed; a third does not even wait for the answers to leave.
 * @param input whose end, or HUP when its terminal has gone, does the same as a first signal.
 */
export function shutDownOnSignals(parts: ShutdownParts, input?: Readable): void {
  let signals = 0;
  let begun = false;
  let exitCode = 0;
  const exit = () => process.exit(exitCode);
  const begin = (why: { readonly signal: NodeJS.Signals } | { readonly input: "ended" }) => {
    if (begun) return;
    begun = true;
    parts.logger.info(why, "shutting down");
    shutDown(parts).then(
      () => {
        parts.logger.info("stopped");
        exit();
      },
      (error: unknown) => {
        parts.logger.fatal({ err: error }, "shutdown failed");
        process.exit(1);
      },
    );
  };
  const onSignal = (signal: NodeJS.Signals, number: number) => {
    signals++;
    if (signals > 1) {
      exitCode = 128 + number;
      if (signals > 2) exit();
      parts.sandbox.processes.killAll();
      parts.server.abortCalls();
      // Node's clients wait for ever on a connection that was told to finish and ends without a word about its calls.
      void answersHaveLeft(parts.server, FAREWELL_MS).then(exit);
      return;
    }
    begin({ signal });
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  if (input === undefined) return;
  const onEnd = () => begin({ input: "ended" });
  input.on("end", onEnd).on("error", onEnd);
  process.on("SIGHUP", () => begin({ signal: "SIGHUP" }));
}

/**
 * After an error that nothing caught (unhandled rejections included) nothing about the daemon is certain: it says why, takes its
 * commands with it, whose callers lose them anyway, and exits with 1 for its supervisor to start it anew.
 */
export function exitOnFatalError({ sandbox, logger, audit }: Pick<ShutdownParts, "sandbox" | "logger" | "audit">): void {
  process.on("uncaughtException", (error, origin) => {
    try {
      logger.fatal({ err: error, origin }, "fatal error");
      // Once more where it arrives when the log is silent or its reader has gone. Not as a stream: nothing runs after this.
      writeSync(STDERR, `picod: fatal error: ${error instanceof Error ? error.message : String(error)}\n`);
    } catch {
      // Nobody is left to be told.
    }
    try {
      sandbox.processes.killAll();
      audit?.note({ event: "stopped", why: "fatal error" });
      audit?.flushNow();
    } finally {
      process.exit(1);
    }
  });
}
