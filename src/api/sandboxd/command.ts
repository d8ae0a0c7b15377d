import type { Call, Caller } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { locateDirectory } from "../../filesystem/locate-directory.js";
import type { ProcessConfig } from "../../gen/sandboxd/process/v1/process_pb.js";
import type { Sandbox } from "../../sandbox.js";
import { resolveUrlPath, throughLinks } from "../../url-path.js";

/** What a request wants to run; its working directory is within the root. @throws INVALID_ARGUMENT, OUTSIDE_ROOT, errno of the directory. */
export function toCommand(
  sandbox: Sandbox,
  { command, envVars, cwd = "" }: ProcessConfig,
  { caller, trace }: Pick<Call, "caller" | "trace">,
) {
  if (command[0] === "") throw new PicodError("INVALID_ARGUMENT", "failed to execute command: no command");
  return {
    command: { argv: command },
    argv: command,
    cwd: cwd === "" && sandbox.root.realPath === "/" ? "" : locate(sandbox, cwd, caller),
    env: envVars,
    user: "",
    limits: {},
    trace,
    capability: caller?.capability,
  };
}

/** Where commands find a directory of the root. */
function locate(sandbox: Sandbox, cwd: string, caller: Caller | undefined): string {
  const { access, path } = throughLinks(resolveUrlPath(sandbox, cwd, "", caller));
  return locateDirectory(access, path);
}
