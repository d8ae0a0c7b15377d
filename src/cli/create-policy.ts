import { homedir } from "node:os";
import type { KnownCallers } from "../auth/known-callers.js";
import { ConfigError } from "../auth/token.js";
import type { Config } from "../config.js";
import { versionOf, WATCH_INTERVAL_MS, watchConfigFiles } from "../config-file.js";
import type { Logger } from "../logger.js";
import { realPathIfAny } from "../os/real-path.js";
import { assertJudging } from "../os/root.js";
import { assertEnforceable } from "../policy/assert-enforceable.js";
import type { Confinement } from "../policy/confinement.js";
import { literalBeginning } from "../policy/path-glob.js";
import { Policy } from "../policy/policy.js";
import { type PolicyFile, readPolicyFile } from "../policy/policy-file.js";

/** A policy, and what keeps it up to date. */
export interface LoadedPolicy {
  readonly policy: Policy;
  /** Reads the file again whenever it changes. @param known whose capabilities it has to have. */
  watch(known: KnownCallers | undefined): void;
}

/** @throws ConfigError for a file that cannot be used, and where the kernel cannot enforce it; undefined when none is configured. */
export async function createPolicy(
  { policy: path }: Pick<Config, "policy">,
  confinement: Confinement,
  logger: Logger,
): Promise<LoadedPolicy | undefined> {
  if (path === undefined) return undefined;
  try {
    assertJudging();
  } catch (error) {
    throw new ConfigError(`the policy ${path} cannot be enforced: ${(error as Error).message}`, { cause: error });
  }
  const version = versionOf([path]);
  const file = await readEnforceable(path, confinement, logger);
  const policy = new Policy(file);
  tell(path, file, logger, "policy read");
  return {
    policy,
    watch(known) {
      const reread = async () => {
        const changed = await readEnforceable(path, confinement, logger);
        const missing = known?.capabilityNames.find((name) => !changed.capabilities.has(name));
        if (missing !== undefined)
          throw new ConfigError(`invalid policy file ${path}: the scopes file names the capability ${missing}`);
        policy.replace(changed);
        confinement.adopt(changed.capabilities);
        tell(path, changed, logger, "policy read again");
      };
      watchConfigFiles([path], version, WATCH_INTERVAL_MS, () => {
        reread().catch((error: unknown) => {
          logger.error({ err: error }, "cannot use the changed policy; what it said before stays in force");
        });
      });
    },
  };
}

async function readEnforceable(path: string, confinement: Confinement, logger: Logger): Promise<PolicyFile> {
  const file = await readPolicyFile(path);
  try {
    const notHeld = assertEnforceable(file.capabilities.values(), confinement.search(homedir()));
    if (notHeld !== undefined) logger.warn(`the policy ${path} is not enforced in one thing: ${notHeld}`);
  } catch (error) {
    throw new ConfigError(`the policy ${path} cannot be enforced: ${(error as Error).message}`, { cause: error });
  }
  return file;
}

function tell(path: string, { capabilities, worldWritable }: PolicyFile, logger: Logger, message: string): void {
  logger.info({ policy: path, capabilities: [...capabilities.keys()] }, message);
  if (worldWritable) logger.warn(`the policy ${path} can be written by every user of the sandbox: chmod 644 it`);
  for (const { name, filesystem } of capabilities.values()) {
    for (const glob of new Set([...(filesystem?.readPaths ?? []), ...(filesystem?.writePaths ?? [])])) {
      const beginning = literalBeginning(glob);
      const real = beginning === undefined ? undefined : realPathIfAny(beginning);
      if (real === undefined || real === beginning) continue;
      logger.warn(
        `${glob} of the capability ${name} grants nothing: ${beginning} is really ${real}, and paths are judged by where they are`,
      );
    }
  }
}
