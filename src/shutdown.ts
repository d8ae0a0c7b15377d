import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "./logger.js";
import type { Readiness } from "./readiness.js";
import type { Sandbox } from "./sandbox.js";
import type { Server } from "./server/create-server.js";

export interface ShutdownParts {
  readonly server: Server;
  readonly sandbox: Sandbox;
  readonly readiness: Readiness;
  readonly logger: Logger;
  readonly graceMs: number;
}

/** After the calls were told, so long their answers may take to leave. */
const LAST_ANSWERS_MS = 1_000;

/**
 * Ends the daemon in order: no new calls; those in progress get `graceMs`, then UNAVAILABLE; running commands are ended; then the
 * connections are closed.
 */
export async function shutDown({ server, sandbox, readiness, logger, graceMs }: ShutdownParts): Promise<void> {
  readiness.stop();
  server.stopAccepting();
  const finished = await Promise.race([server.idle().then(() => true), sleep(graceMs, false)]);
  if (!finished) logger.warn({ graceMs }, "calls still in progress are ended");
  server.abortCalls();
  await sandbox.processes.close();
  sandbox.executions.close();
  await Promise.race([server.idle(), sleep(LAST_ANSWERS_MS)]);
  server.destroy();
}

/**
 * Runs `shutDown` on the first TERM or INT and exits with 0 when it is done. A second signal ends everything at once, with the
 * exit code of a process that it killed.
 */
export function shutDownOnSignals(parts: ShutdownParts): void {
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals, number: number) => {
    if (stopping) {
      parts.sandbox.processes.killAll();
      process.exit(128 + number);
    }
    stopping = true;
    parts.logger.info({ signal }, "shutting down");
    shutDown(parts).then(
      () => {
        parts.logger.info("stopped");
        process.exit(0);
      },
      (error: unknown) => {
        parts.logger.fatal({ err: error }, "shutdown failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
