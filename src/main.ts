import { ConfigError } from "./auth/token.js";
import { auditVerify } from "./cli/audit-verify.js";
import { healthcheck } from "./cli/healthcheck.js";
import { serveMcp } from "./cli/mcp.js";
import { bridgeMcp } from "./cli/mcp-bridge.js";
import { createProgram } from "./cli/program.js";
import { serve } from "./cli/serve.js";
import { loadConfig } from "./config.js";
import { scrubFromStartupMemory } from "./os/self.js";
import { readProgramFile } from "./program-file.js";
import { assertRequirements } from "./requirements.js";
import { SECRET_VARIABLES } from "./telemetry/tracer.js";
import { version, versionDetails } from "./version.js";

/** The command line or the configuration is wrong. */
const EXIT_USAGE = 2;

// Read when the thread pool starts, which is at its first use: file transfers and slow disks should not queue behind four.
process.env.UV_THREADPOOL_SIZE ??= "16";
// A reader of our output that leaves must not end the daemon.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);

const env = { ...process.env };
const program = createProgram({
  async serve(flags, accessToken) {
    // A working directory that is removed must not break the daemon.
    process.chdir("/");
    assertRequirements();
    const environment = takeToken(accessToken);
    for (const name of SECRET_VARIABLES) {
      if (process.env[name] === undefined) continue;
      delete process.env[name];
      // As a whole: the value alone may be short, and stand elsewhere too.
      scrubFromStartupMemory(`${name}=${env[name]}`);
    }
    await serve(loadConfig(flags, env), { flag: accessToken, environment }, env);
  },
  async healthcheck(flags) {
    await healthcheck(loadConfig(flags, env));
  },
  auditVerify(paths, flags) {
    process.exitCode = auditVerify(paths, flags, (text) => process.stdout.write(text));
  },
  async mcp(flags, accessToken, remote) {
    assertRequirements();
    const environment = takeToken(accessToken);
    const config = loadConfig(flags, env);
    if (remote === undefined) await serveMcp(config, env);
    else await bridgeMcp(config, { flag: accessToken, environment }, remote);
  },
  version(json) {
    process.stdout.write(`${json ? JSON.stringify(versionDetails()) : version}\n`);
  },
  licenses() {
    process.stdout.write(readProgramFile("LICENSE"));
    process.stdout.write(readProgramFile("THIRD-PARTY-LICENSES.txt"));
  },
});

program.parseAsync().catch((error: unknown) => {
  process.exitCode = explain(error);
});

/** The token of the environment, which then has it no longer, nor has the start-up memory that one or the flag's. */
function takeToken(flag: string | undefined): string | undefined {
  const environment = process.env.PICOD_ACCESS_TOKEN;
  delete process.env.PICOD_ACCESS_TOKEN;
  delete env.PICOD_ACCESS_TOKEN;
  for (const secret of [flag, environment]) if (secret !== undefined && secret !== "") scrubFromStartupMemory(secret);
  return environment;
}

/** Writes what went wrong for a person, and returns the exit code. Commander has already written its own errors. */
function explain(error: unknown): number {
  const { code, exitCode } = error as { code?: string; exitCode?: number };
  if (code?.startsWith("commander.")) return exitCode === 0 ? 0 : EXIT_USAGE;
  process.stderr.write(`picod: ${(error as Error).message}\n`);
  return error instanceof ConfigError ? EXIT_USAGE : 1;
}
