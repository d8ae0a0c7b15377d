import { once } from "node:events";
import { connect } from "node:http2";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";

/** Many messages of nothing: five bytes each on the wire. */
const CHUNK = Buffer.alloc(50_000);
const MAX_CHUNKS = 400;
const PINGS = 20;

describe("a caller of gRPC that sends empty messages and takes no answers", () => {
  it("is told to wait, without having shown a token", async () => {
    await using daemon = await startDaemon();
    // Nothing of an answer fits through a window of 0.
    const session = connect(daemon.url, { settings: { initialWindowSize: 0 } });
    await once(session, "remoteSettings");
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("error", () => undefined);
    let sent = 0;
    const sendOn = () => {
      if (++sent < MAX_CHUNKS) stream.write(CHUNK, sendOn);
    };
    stream.write(CHUNK, sendOn);
    const ping = promisify((done: () => void) => session.ping(done));
    // It stalls when a number of round trips brought nothing on.
    for (let before = -1; before < sent && sent < MAX_CHUNKS; ) {
      before = sent;
      for (let pings = 0; pings < PINGS; pings++) await ping();
    }
    expect(sent).toBeLessThan(MAX_CHUNKS / 4);
    session.destroy();
  });
});
