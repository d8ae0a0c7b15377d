import { serveStdio } from "../api/mcp/stdio/serve-stdio.js";
import { ConfigError } from "../auth/token.js";
import { type Caller, LOCAL_USER } from "../call.js";
import { assertComplete, type Config } from "../config.js";
import { createLogger } from "../logger.js";
import { createMetrics } from "../metrics.js";
import { spareSelfWhenOutOfMemory } from "../os/out-of-memory.js";
import { closeInheritedDescriptorsOnExec, makeUndumpable } from "../os/self.js";
import type { Policy } from "../policy/policy.js";
import { Readiness } from "../readiness.js";
import { CallsInProgress } from "../server/calls-in-progress.js";
import { createSubcallRunner } from "../server/run-subcall.js";
import { exitOnFatalError, shutDownOnSignals } from "../shutdown.js";
import { version } from "../version.js";
import { createAuditLog } from "./create-audit-log.js";
import { createConfiguredSandbox } from "./create-configured-sandbox.js";
import { createConfinement } from "./create-confinement.js";
import { createPolicy } from "./create-policy.js";

/**
 * Serves the tools of this machine's sandbox over MCP on the standard streams; the end of the input, or a signal, ends it and all that it has
 * started. The log goes to the standard error. @throws ConfigError.
 */
export async function serveMcp(config: Config, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  closeInheritedDescriptorsOnExec();
  makeUndumpable();
  spareSelfWhenOutOfMemory();
  assertComplete(config);
  const logger = await createLogger(config, process.stderr);
  const confinement = createConfinement(config, env, logger, () => audit);
  const loaded = await createPolicy(config, confinement, logger);
  loaded?.watch(undefined);
  const callerNow = () => localCaller(loaded?.policy);
  callerNow();
  const sandbox = createConfiguredSandbox(config, env, confinement);
  const metrics = createMetrics(version, () => sandbox.processes.size);
  const audit = createAuditLog(config, metrics, logger);
  exitOnFatalError({ sandbox, logger, audit });
  const runSubcall = createSubcallRunner({ calls: new CallsInProgress(), metrics, logger, audit });
  const streams = { input: process.stdin, output: process.stdout };
  const onError = (error: Error) => logger.warn({ err: error }, "what came is no message of MCP");
  const close = await serveStdio({ sandbox, config, version, runSubcall }, callerNow, streams, onError);
  // Whoever has ended the input does not wait for answers.
  const server = { abortCalls: () => void close() };
  const { shutdownGraceMs: graceMs, killGraceMs } = config;
  const parts = { server, sandbox, readiness: new Readiness(), logger, audit, tracer: undefined, graceMs, killGraceMs };
  shutDownOnSignals(parts, process.stdin);
  logger.info({ version, pid: process.pid, root: config.root }, "serving MCP on the standard streams");
}

/** @throws ConfigError when the policy grants nothing to whoever has the daemon. */
function localCaller(policy: Policy | undefined): Caller {
  if (policy === undefined) return LOCAL_USER;
  const capability = policy.capabilityOf(LOCAL_USER);
  if (capability === undefined)
    throw new ConfigError("the policy has no daemon_token, whose capability is that of the local user");
  return { ...LOCAL_USER, capability, capabilityName: capability.name };
}
