import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { fulfils, NO_SCOPES } from "../../auth/scopes.js";
import { callerOf, callKey } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import {
  type ExecuteRequest,
  Process_State,
  type ProcessSelector,
  type ProcessService,
  type StreamInputRequest,
} from "../../gen/picod/v1/process_pb.js";
import { signalNumber } from "../../os/spawn.js";
import { execute } from "../../process/execute.js";
import { type FollowOptions, follow } from "../../process/follow.js";
import { assertMayUse } from "../../process/permit-command.js";
import type { ProcessRecord } from "../../process/process-record.js";
import { ProcessSnapshot } from "../../process/process-snapshot.js";
import { findMembers } from "../../process/process-tree.js";
import { start } from "../../process/start.js";
import { stop } from "../../process/stop.js";
import { streamInput } from "../../process/stream-input.js";
import { watch } from "../../process/watch.js";
import type { Readiness } from "../../readiness.js";
import type { Sandbox } from "../../sandbox.js";
import { toExecuteOptions, toExecuteResponse } from "./execute-messages.js";
import { toFollowOptions, toKeepaliveMs, toReceived } from "./follow-messages.js";
import { STATE_MESSAGES, toEvent, toProcess, toSelector, toSize } from "./process-messages.js";
import { assertValidNames, assertValidWriteId, toGraceMs, toStartOptions } from "./start-messages.js";

/** picod.v1.ProcessService: translates and delegates. */
export function createProcessService(sandbox: Sandbox, readiness: Readiness): ServiceImpl<typeof ProcessService> {
  const { processes, registry, users, defaults, executions, maxInputBytes } = sandbox;

  /** The process that a request is about, noted for the log. */
  function select(selector: ProcessSelector | undefined, context: HandlerContext): ProcessRecord {
    const record = registry.find(toSelector(selector), callerOf(context)?.capability);
    context.values.get(callKey).processId = record.id;
    return record;
  }

  async function* followed(record: ProcessRecord, options: FollowOptions, context: HandlerContext) {
    using ending = readiness.whileReady(context.signal);
    for await (const event of follow(record, options, ending.signal)) yield { event: toEvent(event, record) };
  }

  return {
    async execute(request: ExecuteRequest, context) {
      const options = toExecuteOptions(request, context.values.get(callKey).trace, callerOf(context)?.capability);
      if (registry.has(options.id)) {
        throw new PicodError("PROCESS_ID_CONFLICT", `id ${options.id} belongs to a started process`, { id: options.id });
      }
      const run = (abortSignal?: AbortSignal) => execute(processes, users, defaults, options, abortSignal);
      const result = await (options.id === "" ? run(context.signal) : executions.once(options, context.signal, () => run()));
      context.values.get(callKey).processId = result.processId;
      return toExecuteResponse(result);
    },

    async *start(request, context) {
      const options = toStartOptions(request, context.values.get(callKey).trace, callerOf(context)?.capability);
      const following = toFollowOptions(request);
      if (options.size !== undefined) await sandbox.defaults.confinement.terminalTurn(options.capability);
      const record = start(sandbox, options);
      context.values.get(callKey).processId = record.id;
      yield* followed(record, following, context);
    },

    async *attach(request, context) {
      // To look on is not to hold up.
      if (request.backpressure && !fulfils(callerOf(context)?.scopes ?? NO_SCOPES, "process")) {
        throw new PicodError("SCOPE_MISSING", "following with backpressure needs the scope process: it makes the process wait");
      }
      yield* followed(select(request.process, context), toFollowOptions(request), context);
    },

    acknowledgeOutput(request, context) {
      const record = select(request.process, context);
      if (request.release) record.holds.end(request.followerId);
      else record.holds.acknowledge(request.followerId, toReceived(record, request.received));
      return {};
    },

    getProcess(request, context) {
      const record = select(request.process, context);
      const live = record.process === undefined ? [] : findMembers(record.process, record.process.leaderIsReaped());
      return { process: toProcess(record, live.length) };
    },

    listProcesses({ tag, state }, context) {
      const snapshot = new ProcessSnapshot();
      const wanted = (record: ProcessRecord) =>
        (tag === "" || record.tag === tag) && (state === Process_State.UNSPECIFIED || STATE_MESSAGES[record.state] === state);
      const described = registry
        .list(callerOf(context)?.capability)
        .filter(wanted)
        .map((record) => {
          const live = record.process === undefined ? [] : findMembers(record.process, record.process.leaderIsReaped(), snapshot);
          return toProcess(record, live.length);
        });
      return { processes: described };
    },

    async *watchProcesses(request, context) {
      using ending = readiness.whileReady(context.signal);
      for await (const event of watch(
        registry,
        callerOf(context)?.capability,
        toKeepaliveMs(request.keepaliveInterval),
        ending.signal,
      )) {
        if (event.kind === "keepalive") yield { event: { case: "keepalive", value: {} } };
        else if (event.kind === "deleted") yield { event: { case: "deletedId", value: event.record.id } };
        else yield { event: { case: event.kind, value: toProcess(event.record) } };
      }
    },

    sendInput(request, context) {
      const record = select(request.process, context);
      const { data, offset, writeId } = request;
      assertValidWriteId(writeId);
      const capability = callerOf(context)?.capability;
      const inputBytes =
        writeId === ""
          ? record.sendInput(capability, data, offset, maxInputBytes)
          : record.sendInputOnce(writeId, capability, data, offset, maxInputBytes);
      return { inputBytes: BigInt(inputBytes) };
    },

    async streamInput(requests: AsyncIterable<StreamInputRequest>, context) {
      const iterator = requests[Symbol.asyncIterator]();
      const first = (await iterator.next()).value as StreamInputRequest | undefined;
      if (first?.request.case !== "target") throw new PicodError("INVALID_ARGUMENT", "invalid stream: expected target first");
      const { process, offset, close } = first.request.value;
      const record = select(process, context);
      using ending = readiness.whileReady(context.signal);
      const inputBytes = await streamInput(record, callerOf(context)?.capability, pieces(iterator), offset, ending.signal);
      if (close) record.closeInput();
      return { inputBytes: BigInt(inputBytes) };
    },

    closeInput(request, context) {
      select(request.process, context).closeInput();
      return {};
    },

    resizePty(request, context) {
      const record = select(request.process, context);
      if (request.size === undefined) throw new PicodError("INVALID_ARGUMENT", "invalid terminal size: it is missing");
      record.resize(toSize(request.size));
      return {};
    },

    sendSignal(request, context) {
      const record = select(request.process, context);
      const number = signalNumber(request.signal);
      if (number === undefined) throw new PicodError("INVALID_ARGUMENT", `unknown signal: ${JSON.stringify(request.signal)}`);
      record.signal(number, request.leaderOnly);
      return {};
    },

    updateProcess(request, context) {
      const record = select(request.process, context);
      assertValidNames(request.tag, request.label);
      registry.update(record, request.tag, request.label, callerOf(context)?.capability);
      return { process: toProcess(record) };
    },

    async stopProcess(request, context) {
      const graceMs = toGraceMs(request.grace, defaults.killGraceMs);
      const selector = toSelector(request.process);
      const execution = "id" in selector && !registry.has(selector.id) ? await processes.find(selector.id) : undefined;
      if (execution !== undefined) {
        assertMayUse(callerOf(context)?.capability, { id: execution.processId, owner: execution.owner });
        return stop(execution, graceMs);
      }
      const record = select(request.process, context);
      const { forced, survivingProcesses } = await stop(record.process, graceMs);
      return { process: toProcess(record, survivingProcesses), forced, survivingProcesses };
    },

    async deleteProcess(request, context) {
      const record = select(request.process, context);
      if (request.stop) await stop(record.process, defaults.killGraceMs);
      registry.delete(record);
      return {};
    },
  };
}

async function* pieces(requests: AsyncIterator<StreamInputRequest>): AsyncGenerator<Uint8Array> {
  for (let next = await requests.next(); !next.done; next = await requests.next()) {
    const { request } = next.value;
    if (request.case !== "data")
      throw new PicodError("INVALID_ARGUMENT", `invalid stream: expected data, got ${request.case ?? "nothing"}`);
    yield request.value;
  }
}
