import type { WebSocket } from "ws";
import { PicodError } from "../../errors/picod-error.js";
import type { Capability } from "../../policy/capability.js";
import { type FollowEvent, follow } from "../../process/follow.js";
import type { ProcessEnd, StreamName } from "../../process/managed-process.js";
import type { ProcessRecord } from "../../process/process-record.js";
import { asObject, invalid } from "../fields.js";
import { toSignal } from "./process-object.js";
import { toTerminalSize } from "./terminal-size.js";

/** The protocol of `kubectl exec`: one byte in front of each message says which channel it belongs to. */
export const KUBERNETES_PROTOCOL = "v5.channel.k8s.io";

const KEEPALIVE_MS = 30_000;
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const;
const CLOSE_NORMAL = 1000;
const CLOSE_GOING_AWAY = 1001;
const CLOSE_POLICY = 1008;
const CLOSE_TRY_AGAIN_LATER = 1013;
/** What a close frame can carry. */
const MAX_REASON_LENGTH = 120;
/** What comes for a process that has just ended: its end is on the way to the peer. */
const OVERTAKEN: readonly unknown[] = ["PROCESS_ENDED"];

export interface SocketOptions {
  /** Offset to begin at, by stream. */
  readonly from: Partial<Record<StreamName, number>>;
  /** Undefined: all are shown. */
  readonly stream: StreamName | undefined;
  /** The caller's; undefined: no policy is in force. */
  readonly capability: Capability | undefined;
  readonly maxInputBytes: number;
  readonly abortSignal: AbortSignal;
}

/** How one protocol puts things into messages. */
interface Framing {
  /** @throws PicodError */
  onMessage(data: Buffer, isBinary: boolean): void;
  /** Undefined: nothing is sent for it. @throws PicodError when it has no word for what must be told. */
  frame(event: FollowEvent): string | Uint8Array | undefined;
  /** What tells of a message that could not be obeyed; undefined when the protocol has no word for it, and the connection ends. */
  refuse(error: PicodError): string | undefined;
}

/**
 * A process on a WebSocket, for as long as both last; any number of sockets may show one process. By default output and input are
 * raw binary, as terminals in browsers speak, and text that is a JSON object with a `type` is control. Resolves when the socket
 * has closed.
 */
export async function connectSocket(socket: WebSocket, record: ProcessRecord, options: SocketOptions): Promise<void> {
  const { from, stream, abortSignal } = options;
  const framing = (socket.protocol === KUBERNETES_PROTOCOL ? kubernetesFraming : rawFraming)(record, options);
  const stop = new AbortController();
  const end = () => stop.abort();
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  abortSignal.addEventListener("abort", end);
  if (abortSignal.aborted) end();
  // A message that breaks the protocol closes the socket; "close" follows.
  socket.on("error", () => undefined);
  socket.on("close", end);
  socket.on("message", (data: Buffer, isBinary: boolean) => obey(socket, framing, data, isBinary));
  const stopPinging = pingUntilGone(socket);
  try {
    for await (const event of follow(record, { from, backpressure: false, keepaliveMs: KEEPALIVE_MS }, stop.signal)) {
      if (stream !== undefined && "stream" in event && event.stream !== stream) continue;
      const message = framing.frame(event);
      // Each message is handed to the kernel before the next is made: a slow reader falls behind in the log, not in memory.
      if (message !== undefined) await untilSent(socket, message, stop.signal);
    }
    socket.close(CLOSE_NORMAL);
  } catch (error) {
    if (stop.signal.aborted) socket.close(CLOSE_GOING_AWAY, "the daemon is shutting down");
    else socket.close(CLOSE_TRY_AGAIN_LATER, reasonOf(error));
  } finally {
    abortSignal.removeEventListener("abort", end);
  }
  await closed;
  stopPinging();
}

function obey(socket: WebSocket, framing: Framing, data: Buffer, isBinary: boolean): void {
  try {
    framing.onMessage(data, isBinary);
  } catch (error) {
    if (error instanceof PicodError && OVERTAKEN.includes(error.reason)) return;
    const told = error instanceof PicodError ? framing.refuse(error) : undefined;
    if (told === undefined) socket.close(CLOSE_POLICY, reasonOf(error));
    else socket.send(told);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof PicodError ? error.message.replace(/[^\x20-\x7e]/g, "?").slice(0, MAX_REASON_LENGTH) : "internal error";
}

function untilSent(socket: WebSocket, message: string | Uint8Array, abortSignal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      abortSignal.removeEventListener("abort", done);
      resolve();
    };
    abortSignal.addEventListener("abort", done);
    socket.send(message, done);
  });
}

function rawFraming(record: ProcessRecord, { capability, maxInputBytes }: SocketOptions): Framing {
  return {
    onMessage(data, isBinary) {
      const control = isBinary ? undefined : parseControl(data);
      if (control === undefined) record.sendInput(capability, data, undefined, maxInputBytes);
      else if (control.type === "resize") record.resize(toTerminalSize(control, "resize"));
      else if (control.type === "close_input") record.closeInput();
      else record.signal(toSignal(control.signal), false);
    },
    frame(event) {
      if (event.kind === "output") return event.chunk;
      if (event.kind === "trimmed")
        return JSON.stringify({ type: "trimmed", stream: event.stream, from: event.from, to: event.to });
      if (event.kind === "ended") return JSON.stringify({ type: "exit", ...describeEnd(event.end) });
      return undefined;
    },
    refuse: ({ reason, message }) => JSON.stringify({ type: "error", reason, message }),
  };
}

const CONTROL_TYPES = ["resize", "signal", "close_input"];

/** Terminals send what is typed as text too, so only an object of a known type is control. */
function parseControl(data: Buffer): Record<string, unknown> | undefined {
  if (data[0] !== "{".charCodeAt(0)) return undefined;
  try {
    const value = JSON.parse(data.toString("utf8"));
    return CONTROL_TYPES.includes(value.type) ? value : undefined;
  } catch {
    return undefined;
  }
}

function kubernetesFraming(record: ProcessRecord, { capability, maxInputBytes, from }: SocketOptions): Framing {
  const channelOf: Readonly<Record<StreamName, number>> = { stdout: CHANNEL.stdout, stderr: CHANNEL.stderr, pty: CHANNEL.stdout };
  const onChannel = (channel: number, payload: Uint8Array) => Buffer.concat([Uint8Array.of(channel), payload]);
  return {
    onMessage(data) {
      const payload = data.subarray(1);
      if (data[0] === CHANNEL.stdin) record.sendInput(capability, payload, undefined, maxInputBytes);
      else if (data[0] === CHANNEL.close && payload[0] === CHANNEL.stdin) record.closeInput();
      else if (data[0] === CHANNEL.resize) {
        const { Width, Height } = parseObject(payload);
        record.resize(toTerminalSize({ cols: Width, rows: Height }, "resize"));
      }
    },
    frame(event) {
      if (event.kind === "output") return onChannel(channelOf[event.stream], event.chunk);
      // At the start it is what everybody misses who comes late.
      if (event.kind === "trimmed" && event.from > (from[event.stream] ?? 0)) {
        throw new PicodError("FOLLOWER_TOO_SLOW", `${event.stream} was trimmed at ${event.from}`);
      }
      if (event.kind === "ended") return onChannel(CHANNEL.status, Buffer.from(JSON.stringify(kubernetesStatus(event.end))));
      return undefined;
    },
    refuse: () => undefined,
  };
}

/** @throws INVALID_ARGUMENT. */
function parseObject(data: Buffer): Record<string, unknown> {
  try {
    return asObject(JSON.parse(data.toString("utf8")), "message");
  } catch {
    throw invalid("message", "expected a JSON object");
  }
}

/** metav1.Status, as the remote command protocol ends with. */
function kubernetesStatus(end: ProcessEnd): object {
  if (end.exitCode === 0) return { metadata: {}, status: "Success" };
  const causes = [{ reason: "ExitCode", message: String(end.exitCode) }];
  const message = `command terminated with non-zero exit code: ${end.exitCode}`;
  return { metadata: {}, status: "Failure", reason: "NonZeroExitCode", message, details: { causes } };
}

function describeEnd(end: ProcessEnd): object {
  return { exit_code: end.exitCode, outcome: end.reason.replaceAll("-", "_"), signal: end.signal ?? null, message: end.message };
}

/** Cuts a peer off that has not answered a ping by the next one. Returns the function that stops it. */
function pingUntilGone(socket: WebSocket): () => void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered) return socket.terminate();
    answered = false;
    return socket.ping();
  }, KEEPALIVE_MS);
  return () => clearInterval(timer);
}
