import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, openSocket } from "./support/http1.js";
import { partBody, uploadBody, WRITE_FILE } from "./support/messages.js";
import { openFilesIn } from "./support/open-files.js";
import { CANCEL, encodeHeaders, FLAG, FRAME, frame, NO_ERROR, postHeaders, RawHttp2, rstStream } from "./support/raw-http2.js";

const OLD = "the old content";

/** Sends that much of the body of an upload and breaks it off; resolves with the id under which the daemon logs the call. */
type Cut = (daemon: Daemon, body: Buffer, length: number) => Promise<string>;

function overHttp2(contentType: string, breakOff: (raw: RawHttp2, streamId: number) => void, atOnce = false): Cut {
  return async (daemon, body, length) => {
    using raw = await RawHttp2.open(daemon.port);
    const id = randomUUID();
    const more = { authorization: `Bearer ${TOKEN}`, "x-request-id": id };
    const headers = encodeHeaders(postHeaders(WRITE_FILE, contentType, Object.entries(more)));
    raw.socket.cork();
    raw.send(frame(FRAME.headers, FLAG.endHeaders, 1, headers), frame(FRAME.data, 0, 1, body.subarray(0, length)));
    if (atOnce) breakOff(raw, 1);
    raw.socket.uncork();
    if (!atOnce) {
      await hasRead(daemon);
      breakOff(raw, 1);
    }
    await daemon.waitForLog(({ requestId }) => requestId === id);
    return id;
  };
}

function overHttp1(framing: "chunked" | "Content-Length", breakOff: (socket: Socket) => void): Cut {
  return async (daemon, body, length) => {
    const id = randomUUID();
    const chunk = [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")];
    const lines = [
      `POST ${WRITE_FILE} HTTP/1.1`,
      "host: picod",
      `authorization: Bearer ${TOKEN}`,
      `x-request-id: ${id}`,
      "content-type: application/connect+proto",
      framing === "chunked" ? "transfer-encoding: chunked" : `content-length: ${body.length}`,
      "\r\n",
    ];
    const socket = (await openSocket(daemon)).resume();
    const framed = framing === "chunked" ? Buffer.concat(chunk) : body;
    socket.write(Buffer.concat([Buffer.from(lines.join("\r\n")), framed.subarray(0, length)]));
    await hasRead(daemon);
    breakOff(socket);
    await daemon.waitForLog(({ requestId }) => requestId === id);
    socket.destroy();
    return id;
  };
}

function endAndCancel(raw: RawHttp2, stream: number): void {
  raw.send(frame(FRAME.data, FLAG.endStream, stream));
  raw.send(rstStream(stream, CANCEL));
}

/** What was sent before is read before this is answered. */
async function hasRead(daemon: Daemon): Promise<void> {
  await ask(daemon, "/healthz");
}

const PATH_LENGTH = "/tmp/picod-test-123456/file".length;
const BODY_LENGTH = uploadBody("x".repeat(PATH_LENGTH), "new", "content").length;
/** Around the body of one chunk: its length in hexadecimal, and the chunk that ends the body. */
const CHUNKED_LENGTH = BODY_LENGTH + 4 + "\r\n0\r\n\r\n".length;
const GOAWAY = frame(FRAME.goaway, 0, 0, Buffer.alloc(8));
const GRPC = "application/grpc";
const CONNECT = "application/connect+proto";

/** Of HTTP/2 a whole body whose stream was not ended is cut off too. */
const CUTS: readonly (readonly [title: string, cut: Cut, lengths: number])[] = [
  ["a gRPC stream is cancelled", overHttp2(GRPC, (raw, stream) => raw.send(rstStream(stream, CANCEL))), BODY_LENGTH + 1],
  [
    "a gRPC stream is cancelled at once",
    overHttp2(GRPC, (raw, stream) => raw.send(rstStream(stream, CANCEL)), true),
    BODY_LENGTH + 1,
  ],
  [
    "a gRPC stream is reset without an error",
    overHttp2(GRPC, (raw, stream) => raw.send(rstStream(stream, NO_ERROR))),
    BODY_LENGTH + 1,
  ],
  [
    "a gRPC stream is reset without an error at once",
    overHttp2(GRPC, (raw, stream) => raw.send(rstStream(stream, NO_ERROR)), true),
    BODY_LENGTH + 1,
  ],
  // As Node's client cancels.
  ["a gRPC stream is ended and cancelled", overHttp2(GRPC, (raw, stream) => endAndCancel(raw, stream)), BODY_LENGTH + 1],
  [
    "a gRPC stream is ended and cancelled at once",
    overHttp2(GRPC, (raw, stream) => endAndCancel(raw, stream), true),
    BODY_LENGTH + 1,
  ],
  ["a gRPC connection is reset", overHttp2(GRPC, ({ socket }) => socket.resetAndDestroy()), BODY_LENGTH + 1],
  ["a gRPC connection is closed", overHttp2(GRPC, ({ socket }) => socket.end()), BODY_LENGTH + 1],
  ["a gRPC client says GOAWAY and closes", overHttp2(GRPC, ({ socket }) => socket.end(GOAWAY)), BODY_LENGTH + 1],
  [
    "a Connect stream over HTTP/2 is cancelled",
    overHttp2(CONNECT, (raw, stream) => raw.send(rstStream(stream, CANCEL))),
    BODY_LENGTH + 1,
  ],
  [
    "a Connect stream over HTTP/2 is reset without an error",
    overHttp2(CONNECT, (raw, stream) => raw.send(rstStream(stream, NO_ERROR))),
    BODY_LENGTH + 1,
  ],
  ["a chunked HTTP/1.1 connection is reset", overHttp1("chunked", (socket) => socket.resetAndDestroy()), CHUNKED_LENGTH],
  ["a chunked HTTP/1.1 connection is closed", overHttp1("chunked", (socket) => socket.end()), CHUNKED_LENGTH],
  [
    "an HTTP/1.1 connection with Content-Length is reset",
    overHttp1("Content-Length", (socket) => socket.resetAndDestroy()),
    BODY_LENGTH,
  ],
  ["an HTTP/1.1 connection with Content-Length is closed", overHttp1("Content-Length", (socket) => socket.end()), BODY_LENGTH],
];

describe("a broken upload is never committed", () => {
  it.each(CUTS)("when %s after any byte", async (_title, cut, lengths) => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    expect(path.length).toBe(PATH_LENGTH);
    writeFileSync(path, OLD);
    const before = daemon.descriptors();
    for (let length = 0; length < lengths; length++) {
      const id = await cut(daemon, uploadBody(path, "new", "content"), length);
      expect(readFileSync(path, "utf8"), `cut after ${length} bytes`).toBe(OLD);
      expect(daemon.logs.find(({ requestId }) => requestId === id)?.code, `cut after ${length} bytes`).not.toBe("ok");
    }
    expect(readdirSync(directory.path)).toEqual(["file"]);
    await eventually("all descriptors are closed", () => daemon.descriptors() <= before);
  });

  it.each([GRPC, CONNECT])("and one that arrives whole is (%s)", async (contentType) => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, OLD);
    const end = overHttp2(contentType, (raw, stream) => raw.send(frame(FRAME.data, FLAG.endStream, stream)));
    await end(daemon, uploadBody(path, "new", "content"), Number.POSITIVE_INFINITY);
    expect(readFileSync(path, "utf8")).toBe("newcontent");
  });
});

describe("an upload of an announced size", () => {
  const announced = (path: string, ...chunks: readonly string[]) => partBody({ path, size: 10n }, ...chunks);

  it.each([GRPC, CONNECT])("is never committed when it is ended too early and cancelled (%s)", async (contentType) => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, OLD);
    const cut = overHttp2(contentType, (raw, stream) => endAndCancel(raw, stream));
    const body = announced(path, "new", "content");
    for (let length = 0; length < body.length; length++) {
      const id = await cut(daemon, body, length);
      expect(readFileSync(path, "utf8"), `cut after ${length} bytes`).toBe(OLD);
      expect(daemon.logs.find(({ requestId }) => requestId === id)?.code, `cut after ${length} bytes`).not.toBe("ok");
    }
  });

  it.each([GRPC, CONNECT])("is believed when it has arrived, without asking back (%s)", async (contentType) => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    let pings = -1;
    const end = overHttp2(contentType, (raw, stream) => {
      raw.send(frame(FRAME.data, FLAG.endStream, stream));
      raw.socket.once("data", () => {
        pings = raw.pings;
      });
    });
    await end(daemon, announced(path, "new", "content"), Number.POSITIVE_INFINITY);
    expect(readFileSync(path, "utf8")).toBe("newcontent");
    await eventually("the answer has come", () => pings === 0);
  });
});

/** Of a part that breaks off counts what has arrived, and nothing of it is visible. */
const PART_CUTS = CUTS.filter(([title]) =>
  ["a gRPC stream is cancelled", "a gRPC connection is reset", "a chunked HTTP/1.1 connection is closed"].includes(title),
);

describe("a broken part counts as far as it has arrived", () => {
  it.each(PART_CUTS)(
    "when %s after any byte",
    async (title, cut) => {
      await using daemon = await startDaemon();
      await using clients = connectTo(daemon.url);
      const { filesystem } = clients;
      using directory = temporaryDirectory();
      const path = `${directory.path}/file`;
      writeFileSync(path, OLD);
      const uploadId = "up";
      const body = partBody({ path, uploadId }, "new", "content");
      await filesystem.listUploads({});
      const before = daemon.descriptors();
      const lengths = body.length + (title.includes("chunked") ? 5 : 1);
      let most = 0n;
      for (let length = 0; length < lengths; length++) {
        const id = await cut(daemon, body, length);
        expect(daemon.logs.find(({ requestId }) => requestId === id)?.code, `cut after ${length} bytes`).not.toBe("ok");
        const { uploads } = await filesystem.listUploads({});
        const received = uploads[0]?.received ?? [];
        expect(received.length).toBeLessThanOrEqual(1);
        const end = received[0]?.end ?? 0n;
        expect([0n, 3n, 10n], `cut after ${length} bytes`).toContain(end);
        if (end > most) most = end;
        expect(readFileSync(path, "utf8")).toBe(OLD);
        expect(readdirSync(directory.path)).toEqual(["file"]);
      }
      expect(most).toBe(10n);
      await filesystem.commitUpload({ uploadId, size: 10n });
      expect(readFileSync(path, "utf8")).toBe("newcontent");
      await eventually("all descriptors are closed", () => daemon.descriptors() <= before);
    },
    120_000,
  );
});

describe("an upload that its client gives up", () => {
  it.each(["gRPC", "gRPC-Web over HTTP/2", "Connect over HTTP/2", "Connect over HTTP/1.1"] as const)(
    "is never committed (%s)",
    async (protocol) => {
      await using daemon = await startDaemon();
      await using clients = connectTo(daemon.url, { protocol });
      using directory = temporaryDirectory();
      const path = `${directory.path}/file`;
      writeFileSync(path, OLD);
      for (let round = 0; round < 100; round++) {
        const cancel = new AbortController();
        async function* upload() {
          yield { request: { case: "metadata" as const, value: { path } } };
          yield { request: { case: "chunk" as const, value: Buffer.from("new") } };
          await new Promise(() => undefined);
        }
        const id = randomUUID();
        const written = clients.filesystem.writeFile(upload(), { signal: cancel.signal, headers: { "x-request-id": id } });
        const failed = expect(written).rejects.toThrow();
        await eventually("the upload has begun", () => openFilesIn(daemon, directory.path).length > 0);
        cancel.abort();
        await failed;
        await daemon.waitForLog(({ requestId }) => requestId === id);
        expect(readFileSync(path, "utf8")).toBe(OLD);
        await eventually("its file is closed", () => openFilesIn(daemon, directory.path).length === 0);
      }
    },
  );
});
