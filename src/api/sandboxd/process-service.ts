import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerOf, callKey } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import {
  type ProcessConfig,
  type ProcessService,
  Signal,
  type StartRequest,
  type WriteStdinRequest,
} from "../../gen/sandboxd/process/v1/process_pb.js";
import { runToEnd } from "../../process/execute.js";
import { follow } from "../../process/follow.js";
import { start } from "../../process/start.js";
import { stop } from "../../process/stop.js";
import { streamInput } from "../../process/stream-input.js";
import type { Sandbox } from "../../sandbox.js";
import { toCommand } from "./command.js";
import { exitCode, failureToStart, MAX_ANSWER_BYTES, toOutput } from "./messages.js";
import { NumberedProcesses } from "./numbered-processes.js";

const KEEPALIVE_MS = 30_000;
const DEFAULT_SIZE = { cols: 80, rows: 24 };
const MAX_SIZE = 65_535;

/** process.v1.ProcessService of Kubernetes agent-sandbox: translates and delegates. */
export function createSandboxdService(sandbox: Sandbox): ServiceImpl<typeof ProcessService> {
  const { processes, registry, users, defaults, maxInputBytes } = sandbox;
  const numbered = new NumberedProcesses();
  const inherited = { ...defaults.environment.defaults, ...sandbox.inheritedEnvironment };
  const commandDefaults = { ...defaults, environment: { ...defaults.environment, defaults: inherited } };

  function find(processId: number, context: HandlerContext) {
    const record = numbered.find(processId, callerOf(context)?.capability);
    context.values.get(callKey).processId = record.id;
    return record;
  }

  return {
    async execute({ config }, context) {
      const command = toCommand(sandbox, required(config), context.values.get(callKey));
      const options = { ...command, stdin: new Uint8Array(), timeoutMs: 0, maxOutputBytes: MAX_ANSWER_BYTES, id: "" };
      const result = await runToEnd(processes, users, commandDefaults, options, context.signal);
      context.values.get(callKey).processId = result.processId;
      if (result.end.reason === "spawn-failed") throw failureToStart("failed to execute command", result.end);
      return { exitCode: exitCode(result.end), ...toOutput(result.stdout, result.stderr) };
    },

    async *start({ config, pty }: StartRequest, context: HandlerContext) {
      const { command, ...rest } = toCommand(sandbox, required(config), context.values.get(callKey));
      const size = pty && { cols: toExtent(pty.cols, DEFAULT_SIZE.cols), rows: toExtent(pty.rows, DEFAULT_SIZE.rows) };
      const names = { id: "", tag: "", label: "", sessionId: "" };
      const from = { command: "", argv: command.argv, size, stdin: true, login: false, timeoutMs: 0 };
      if (size !== undefined) await sandbox.defaults.confinement.terminalTurn(rest.capability);
      const record = start({ ...sandbox, defaults: commandDefaults }, { ...rest, ...from, ...names });
      context.values.get(callKey).processId = record.id;
      if (record.end?.reason === "spawn-failed") {
        registry.delete(record);
        throw failureToStart(`failed to start command${size === undefined ? "" : " with PTY"}`, record.end);
      }
      const processId = numbered.add(record);
      try {
        const following = { from: {}, backpressure: true, keepaliveMs: KEEPALIVE_MS };
        for await (const event of follow(record, following, context.signal)) {
          if (event.kind === "started") {
            yield { event: { case: "init", value: { processId } } };
          } else if (event.kind === "output") {
            const { chunk, stream } = event;
            yield { event: { case: stream === "pty" ? "stdout" : stream, value: chunk as Uint8Array<ArrayBuffer> } };
          } else if (event.kind === "ended") {
            numbered.delete(processId);
            yield { event: { case: "exit", value: { exitCode: exitCode(event.end) } } };
          }
        }
      } finally {
        numbered.delete(processId);
        // The stream owns it; what it has left in the background stays when it ended by itself.
        if (record.end === undefined) await stop(record.process, defaults.killGraceMs);
        if (record.end !== undefined) registry.delete(record);
      }
    },

    async writeStdin({ processId, payload }: WriteStdinRequest, context: HandlerContext) {
      const record = find(processId, context);
      if (payload.case === "eof") record.closeInput();
      if (payload.case !== "input" || payload.value.length === 0) return {};
      // Once its own turn has come a piece is taken whole, whatever its size.
      const pieces = inPieces(payload.value, maxInputBytes);
      await streamInput(record, callerOf(context)?.capability, pieces, undefined, context.signal);
      return {};
    },

    sendSignal({ processId, signal }, context) {
      const record = find(processId, context);
      if (signal === Signal.UNSPECIFIED || Signal[signal] === undefined) {
        const name = signal === Signal.UNSPECIFIED ? "SIGNAL_UNSPECIFIED" : String(signal);
        throw new PicodError("INVALID_ARGUMENT", `unsupported or unspecified signal: ${name}`);
      }
      record.signal(signal, false);
      return {};
    },

    resizeTTY({ processId, cols, rows }, context) {
      const record = find(processId, context);
      if (record.size === undefined) {
        throw new PicodError("NOT_A_TERMINAL", "failed to resize TTY: process is completed or has no active PTY");
      }
      if (cols > 0 && rows > 0) record.resize({ cols: Math.min(cols, MAX_SIZE), rows: Math.min(rows, MAX_SIZE) });
      return {};
    },
  };
}

function required(config: ProcessConfig | undefined): ProcessConfig {
  if (config === undefined || config.command.length === 0) throw new PicodError("INVALID_ARGUMENT", "command is required");
  return config;
}

const toExtent = (asked: number, otherwise: number) => (asked === 0 ? otherwise : Math.min(asked, MAX_SIZE));

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
