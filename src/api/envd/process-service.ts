import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { callerOf, callKey } from "../../call.js";
import { type Process, type ProcessSelector, Signal, type StartRequest } from "../../gen/envd/process/process_pb.js";
import { mayUse } from "../../process/permit-command.js";
import { stop } from "../../process/stop.js";
import type { Sandbox } from "../../sandbox.js";
import { actingUser, assertKnownUser } from "./acting-user.js";
import { replayFrom } from "./following.js";
import { sendInput } from "./input.js";
import { leaveMarker } from "./marker.js";
import { processEvents } from "./process-events.js";
import { type EnvdProcess, EnvdProcesses } from "./processes.js";
import { startProcess, toSize } from "./start-process.js";
import { E2B_SANDBOX, type EnvdState } from "./state.js";

/** process.Process of E2B's envd: translates and delegates. */
export function createEnvdProcessService(sandbox: Sandbox, state: EnvdState): ServiceImpl<typeof Process> {
  const processes = new EnvdProcesses();
  let markerIsLeft = false;

  function find(selector: ProcessSelector | undefined, context: HandlerContext): EnvdProcess {
    assertKnownUser(sandbox, context.requestHeader);
    const found = processes.find(selector, callerOf(context)?.capability);
    context.values.get(callKey).processId = found.record.id;
    return found;
  }

  return {
    list(_request, context) {
      assertKnownUser(sandbox, context.requestHeader);
      return {
        processes: processes
          .live()
          .filter(({ record }) => mayUse(callerOf(context)?.capability, record.from.owner))
          .map(({ config, pid, tag }) => ({ config, pid, ...(tag !== undefined && { tag }) })),
      };
    },

    async *start(request: StartRequest, context: HandlerContext) {
      const user = actingUser(sandbox, state, context.requestHeader);
      const capability = callerOf(context)?.capability;
      if (request.pty !== undefined) await sandbox.defaults.confinement.terminalTurn(capability);
      context.signal.throwIfAborted();
      if (!markerIsLeft) leaveMarker(E2B_SANDBOX);
      markerIsLeft = true;
      const remainingMs = context.timeoutMs();
      const timeoutMs = remainingMs === undefined ? 0 : Math.max(1, Math.ceil(remainingMs));
      const record = startProcess(sandbox, state, user, request, timeoutMs, context.values.get(callKey).trace, capability);
      context.values.get(callKey).processId = record.id;
      const pid = record.process?.leaderPid;
      if (pid === undefined) throw new ConnectError(`cannot start a process: ${record.end?.message}`, Code.Internal);
      const { process: config = { $typeName: "process.ProcessConfig", cmd: "", args: [], envs: {} }, tag } = request;
      const started: EnvdProcess = { pid, record, config, tag };
      processes.add(started);
      for await (const message of processEvents(started, {}, context)) {
        // The starter set the deadline; only others are told that the process was killed for it.
        if (message.event.event?.case === "end" && record.end?.reason === "timed-out") {
          throw new ConnectError("the operation timed out", Code.DeadlineExceeded);
        }
        yield message;
      }
    },

    async *connect({ process }, context: HandlerContext) {
      assertKnownUser(sandbox, context.requestHeader);
      const found = processes.findOrEnded(process, callerOf(context)?.capability);
      context.values.get(callKey).processId = found.record.id;
      yield* processEvents(found, replayFrom(context.requestHeader, found.record), context);
    },

    update({ process, pty }, context) {
      const { record } = find(process, context);
      if (pty === undefined) return {};
      if (record.size === undefined) throw new ConnectError("error resizing tty: the process has no terminal", Code.Internal);
      record.resize(toSize(pty));
      return {};
    },

    async sendInput({ process, input }, context) {
      await sendInput(find(process, context), callerOf(context)?.capability, input, context.signal);
      return {};
    },

    async streamInput(messages, context: HandlerContext) {
      let target: EnvdProcess | undefined;
      for await (const { event } of messages) {
        if (event.case === undefined) throw new ConnectError("invalid event type: it is empty", Code.Unimplemented);
        if (event.case === "start") target = find(event.value.process, context);
        if (event.case !== "data") continue;
        if (target === undefined) throw new ConnectError("data before start: no process is selected", Code.InvalidArgument);
        await sendInput(target, callerOf(context)?.capability, event.value.input, context.signal);
      }
      return {};
    },

    async sendSignal({ process, signal }, context) {
      const { record } = find(process, context);
      if (signal === Signal.SIGKILL) await stop(record.process, "none");
      else if (signal === Signal.SIGTERM) {
        record.process?.signal(signal, true);
        record.process?.endWithLeader();
      } else throw new ConnectError(`invalid signal: ${signal}`, Code.Unimplemented);
      return {};
    },

    closeStdin({ process }, context) {
      const { record } = find(process, context);
      if (record.size !== undefined) throw new ConnectError("cannot close stdin of a terminal: send 0x04", Code.Unknown);
      if (record.from.stdin) record.closeInput();
      return {};
    },
  };
}
