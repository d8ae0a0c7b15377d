import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Frame types and flags of RFC 9113 section 6. */
export const FRAME = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const;
export const FLAG = { endStream: 1, ack: 1, endHeaders: 4 } as const;
export const NO_ERROR = 0;
export const CANCEL = 8;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export type HeaderList = readonly (readonly [name: string, value: string])[];

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** HPACK without compression: every field is a literal that is never indexed. */
export function encodeHeaders(headers: HeaderList): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.of(0x10), encodeString(name), encodeString(value)]));
}

export function rstStream(streamId: number, code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame(FRAME.rstStream, 0, streamId, payload);
}

export function postHeaders(path: string, contentType: string, more: HeaderList = []): HeaderList {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "127.0.0.1"],
    [":path", path],
    ["content-type", contentType],
    ...more,
  ];
}

/** An HTTP/2 connection that sends whatever frames it is told to. Use with `using`. */
export class RawHttp2 implements Disposable {
  readonly socket: Socket;
  /** Resolves when the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
  /** How many pings of the daemon it has answered. */
  pings = 0;
  #received = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    // What the daemon answers is looked at in its log and its state; a reset is one way to end.
    socket.on("error", () => undefined).on("data", (bytes: Buffer) => this.#answerPings(bytes));
  }

  #answerPings(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= 9 && this.#received.length >= 9 + this.#received.readUIntBE(0, 3)) {
      const end = 9 + this.#received.readUIntBE(0, 3);
      const isPing = this.#received.readUInt8(3) === FRAME.ping && this.#received.readUInt8(4) === 0;
      if (isPing) this.pings++;
      if (isPing) this.send(frame(FRAME.ping, FLAG.ack, 0, this.#received.subarray(9, end)));
      this.#received = this.#received.subarray(end);
    }
  }

  static async open(port: number): Promise<RawHttp2> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const raw = new RawHttp2(socket);
    raw.send(PREFACE, frame(FRAME.settings, 0, 0), frame(FRAME.settings, FLAG.ack, 0));
    return raw;
  }

  send(...frames: readonly Buffer[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(frames));
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([encodeLength(bytes.length), bytes]);
}

/** An integer with a prefix of seven bits, RFC 7541 section 5.1. */
function encodeLength(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.of(...bytes, rest);
}
