import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, openSocket } from "./support/http1.js";
import { openFilesIn } from "./support/open-files.js";
import { CANCEL, encodeHeaders, FLAG, FRAME, frame, RawHttp2, rstStream } from "./support/raw-http2.js";

const OLD = "the old content";
const NEW = "new content";
const AUTHORIZATION = `Bearer ${TOKEN}`;
const AT_ONCE = 32;

/** An upload in the words of another contract. */
interface Upload {
  readonly method: "PUT" | "POST";
  readonly path: string;
  readonly contentType: string;
  readonly body: string;
  /** Each part of it is written when it is whole, whatever becomes of the request. */
  readonly writesParts?: true;
}

/** It ends with its last delimiter: whatever is cut off, it is not whole. */
function form(fields: Readonly<Record<string, string>>): Pick<Upload, "contentType" | "body"> {
  const parts = Object.entries(fields).map(
    ([name, content]) => `--cut\r\ncontent-disposition: form-data; ${name}\r\n\r\n${content}\r\n`,
  );
  return { contentType: "multipart/form-data; boundary=cut", body: `${parts.join("")}--cut--` };
}

function json(body: object): Pick<Upload, "contentType" | "body"> {
  return { contentType: "application/json", body: JSON.stringify(body) };
}

const raw = { contentType: "application/octet-stream", body: NEW };
const content = Buffer.from(NEW).toString("base64");

const UPLOADS: readonly (readonly [contract: string, (name: string) => Upload])[] = [
  ["agent-sandbox", (name) => ({ method: "PUT", path: `/v1/files/${name}`, ...raw })],
  ["agent-sandbox, as a form", (name) => ({ method: "PUT", path: `/v1/files/${name}`, ...form({ 'name="file"': NEW }) })],
  ["AgentCube", (path) => ({ method: "POST", path: "/api/files", ...json({ path, content, mode: "0600" }) })],
  ["AgentCube, its path last", (path) => ({ method: "POST", path: "/api/files", ...json({ content, path }) })],
  [
    "AgentCube, as a form",
    (path) => ({ method: "POST", path: "/api/files", ...form({ 'name="path"': path, 'name="file"; filename="x"': NEW }) }),
  ],
  ["E2B", (name) => ({ method: "POST", path: `/files?username=root&path=/${name}`, ...raw })],
  [
    "E2B, as a form",
    (name) => {
      const file = form({ [`name="file"; filename="/${name}"`]: NEW });
      return { method: "POST", path: "/files?username=root", ...file, writesParts: true };
    },
  ],
];

/** Sends that much of an upload and breaks it off; resolves when the daemon is done with it. */
type Cut = (daemon: Daemon, upload: Upload, length: number) => Promise<void>;

function overHttp1(breakOff: (socket: Socket) => void): Cut {
  return async (daemon, { method, path, contentType, body }, length) => {
    const id = randomUUID();
    const lines = [
      `${method} ${path} HTTP/1.1`,
      "host: picod",
      `authorization: ${AUTHORIZATION}`,
      `x-request-id: ${id}`,
      `content-type: ${contentType}`,
      `content-length: ${body.length + 1}`,
      `\r\n${body.slice(0, length)}`,
    ];
    const socket = (await openSocket(daemon)).resume();
    socket.write(lines.join("\r\n"));
    await breakOffAndWait(daemon, id, () => breakOff(socket));
    socket.destroy();
  };
}

const overHttp2: Cut = async (daemon, { method, path, contentType, body }, length) => {
  const id = randomUUID();
  using connection = await RawHttp2.open(daemon.port);
  const pseudo = { ":method": method, ":scheme": "http", ":authority": "picod", ":path": path };
  const headers = { authorization: AUTHORIZATION, "x-request-id": id, "content-type": contentType };
  connection.send(
    frame(FRAME.headers, FLAG.endHeaders, 1, encodeHeaders(Object.entries({ ...pseudo, ...headers }))),
    frame(FRAME.data, 0, 1, Buffer.from(body.slice(0, length))),
  );
  await breakOffAndWait(daemon, id, () => connection.send(rstStream(1, CANCEL)));
};

async function breakOffAndWait(daemon: Daemon, id: string, breakOff: () => void): Promise<void> {
  // What was sent before is read before this is answered.
  await ask(daemon, "/healthz");
  breakOff();
  await daemon.waitForLog(({ requestId }) => requestId === id);
  expect(daemon.logs.find(({ requestId }) => requestId === id)?.code).not.toBe("ok");
}

/** A request that is whole, and an upload in it that is not. */
const inItsBody: Cut = async (daemon, { method, path, contentType, body }, length) => {
  if (contentType === raw.contentType || length === body.length) return;
  const headers = { authorization: AUTHORIZATION, "content-type": contentType, "content-length": length };
  const { status } = await ask(daemon, path, { method, headers }, body.slice(0, length));
  expect(status, body.slice(0, length)).toBeGreaterThanOrEqual(400);
};

const CUTS: readonly (readonly [how: string, cut: Cut])[] = [
  ["its connection is closed", overHttp1((socket) => socket.end())],
  ["its connection is reset", overHttp1((socket) => socket.resetAndDestroy())],
  ["its stream is cancelled", overHttp2],
  ["its body ends", inItsBody],
];

describe("an upload that is cut after any byte changes nothing", () => {
  it.each(UPLOADS)("in the words of %s", { timeout: 60_000 }, async (_contract, toUpload) => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--root", directory.path] });
    writeFileSync(`${directory.path}/file`, OLD);
    for (const [how, cut] of CUTS) {
      for (const name of ["file", "new/file"]) {
        const upload = toUpload(name);
        const most = upload.body.length - (upload.writesParts ? 1 : 0);
        const lengths = Array.from({ length: most + 1 }, (_, length) => length);
        while (lengths.length > 0) await Promise.all(lengths.splice(0, AT_ONCE).map((length) => cut(daemon, upload, length)));
      }
      expect(readFileSync(`${directory.path}/file`, "utf8"), how).toBe(OLD);
      expect(readdirSync(directory.path), how).toEqual(["file"]);
    }
    await eventually("all files are closed", () => openFilesIn(daemon, directory.path).every((path) => path === directory.path));
  });
});
