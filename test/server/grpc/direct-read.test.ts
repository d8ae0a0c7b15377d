import { once } from "node:events";
import { connect, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { type ReadControl, readDirectly } from "../../../src/server/grpc/direct-read.js";
import { eventually } from "../../helpers/eventually.js";

const WINDOW_BYTES = 65_535;

/** Everything that arrives on one stream, in rooms of a few sizes, one after the other. */
class Collected {
  readonly control: ReadControl | undefined;
  bytes = 0;
  ended = false;
  pausesAtOnce = false;
  #pieces: Buffer[] = [];
  #room: Buffer = Buffer.alloc(0);

  constructor(stream: ServerHttp2Stream) {
    stream.on("error", () => undefined);
    stream.once("end", () => {
      this.ended = true;
    });
    this.control = readDirectly(stream, {
      room: () => {
        this.#room = Buffer.alloc(1 + (this.bytes % 7919));
        return this.#room;
      },
      arrived: (bytes) => {
        this.#pieces.push(this.#room.subarray(0, bytes));
        this.bytes += bytes;
        if (this.pausesAtOnce) this.control?.pause();
      },
    });
  }

  get all(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}

async function openStream() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const request = session.request({ ":method": "POST" });
  request.on("error", () => undefined);
  const [stream] = (await once(server, "stream")) as [ServerHttp2Stream];
  const close = async () => {
    session.destroy();
    server.close();
    await once(server, "close");
  };
  return { request, collected: new Collected(stream), stream, [Symbol.asyncDispose]: close };
}

describe("readDirectly", () => {
  it("puts all that arrives where it is told to, and ends with the caller's side", async () => {
    await using opened = await openStream();
    const { request, collected } = opened;
    expect(collected.control).toBeDefined();
    const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    request.end(content);
    await eventually("the end has arrived", () => collected.ended);
    expect(collected.all.equals(content)).toBe(true);
  });

  it("lets the caller wait, and go on", async () => {
    await using opened = await openStream();
    const { request, collected } = opened;
    collected.pausesAtOnce = true;
    request.write(Buffer.alloc(4 * WINDOW_BYTES, "x"));
    await eventually("the window is full", () => collected.bytes === WINDOW_BYTES);
    collected.pausesAtOnce = false;
    collected.control?.resume();
    await eventually("the rest has arrived", () => collected.bytes === 4 * WINDOW_BYTES);
  });

  it("takes a word to a stream that is gone for nothing", async () => {
    await using opened = await openStream();
    const { request, collected, stream } = opened;
    request.close();
    await once(stream, "close");
    collected.control?.pause();
    collected.control?.resume();
    expect(collected.bytes).toBe(0);
  });

  it("leaves a stream alone of which something waits to be read", async () => {
    await using opened = await openStream();
    const { request, stream } = opened;
    stream.unshift(Buffer.from("a"));
    const reader = { room: () => Buffer.alloc(1), arrived: () => undefined };
    expect(readDirectly(stream, reader)).toBeUndefined();
    request.end();
  });
});
