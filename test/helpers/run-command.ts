import { loadConfig, type RawFlags } from "../../src/config.js";
import { closeInheritedDescriptorsOnExec } from "../../src/os/self.js";
import { Confinement } from "../../src/policy/confinement.js";
import { type ExecuteOptions, type ExecuteResult, execute } from "../../src/process/execute.js";
import { createSandbox, type Sandbox } from "../../src/sandbox.js";
import { UNTRACED } from "../../src/trace.js";

export interface Runner extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** Runs a command line, or an argument vector, in this process: the operation itself, without a server. */
  run(command: string | readonly string[], options?: Partial<ExecuteOptions>, abortSignal?: AbortSignal): Promise<ExecuteResult>;
}

/** Use with `await using`. */
export function createRunner(flags: RawFlags = {}): Runner {
  closeInheritedDescriptorsOnExec();
  const confinement = new Confinement({
    path: process.env.PATH ?? "",
    shell: undefined,
    onRefused: () => undefined,
    onLeftOut: () => undefined,
  });
  const sandbox = createSandbox(loadConfig(flags, {}), { PATH: process.env.PATH }, confinement);
  return {
    sandbox,
    run(command, options = {}, abortSignal = undefined) {
      const all: ExecuteOptions = {
        command: typeof command === "string" ? { line: command } : { argv: command },
        cwd: "/",
        env: {},
        user: "",
        stdin: new Uint8Array(),
        timeoutMs: undefined,
        maxOutputBytes: undefined,
        limits: {},
        id: "",
        trace: UNTRACED,
        capability: undefined,
        ...options,
      };
      return execute(sandbox.processes, sandbox.users, sandbox.defaults, all, abortSignal);
    },
    async [Symbol.asyncDispose]() {
      await sandbox.processes.close();
      sandbox.executions.close();
      sandbox.confinement.close();
    },
  };
}
