import type { AuditLog } from "../audit/audit-log.js";
import type { Config } from "../config.js";
import type { Logger } from "../logger.js";
import { Confinement } from "../policy/confinement.js";
import { DEFAULT_PATH } from "../process/environment.js";

/** What starts the commands of capabilities. @param audit asked when something was refused: it is made later. */
export function createConfinement(
  { shell }: Pick<Config, "shell">,
  env: Readonly<Record<string, string | undefined>>,
  logger: Logger,
  audit: () => AuditLog | undefined,
): Confinement {
  return new Confinement({
    path: env.PATH ?? DEFAULT_PATH,
    shell,
    onRefused: (capability, refused) => {
      logger.warn({ capability, ...refused }, "request out of a confined network refused");
      audit()?.note({ event: "network_refused", capability, ...refused });
    },
    onLeftOut: (capability, count) => {
      logger.warn({ capability, count }, "requests out of a confined network refused and not listed");
      audit()?.note({ event: "network_refusals_left_out", capability, count });
    },
  });
}
