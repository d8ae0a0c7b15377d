import { AuditLog } from "../audit/audit-log.js";
import type { Config } from "../config.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { version } from "../version.js";

/** Undefined: none is kept. */
export function createAuditLog(config: Config, metrics: Metrics, logger: Logger): AuditLog | undefined {
  const { auditLog: path, auditLogMaxBytes: maxBytes, auditLogFiles: keptFiles, auditCommands: commands } = config;
  if (path === undefined) return undefined;
  const audit = new AuditLog({ path, maxBytes, keptFiles, commands }, metrics, logger);
  process.on("SIGHUP", () => audit.reopen());
  audit.note({ event: "started", version, pid: process.pid });
  return audit;
}
