import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { curl } from "./support/curl.js";
import { ask, openSocket } from "./support/http1.js";
import { openFilesIn } from "./support/open-files.js";

const authorization = `Bearer ${TOKEN}`;
/** More than what is read through Node's parser. */
const LARGE = randomBytes(24 * 1024 * 1024 + 12_345);
const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("base64");
const head = (path: string, bytes: number, ...more: string[]) =>
  [
    `PUT /v1/files/${path} HTTP/1.1`,
    "host: x",
    `authorization: ${authorization}`,
    `content-length: ${bytes}`,
    ...more,
    "",
    "",
  ].join("\r\n");

function put(daemon: Daemon, path: string, body: Uint8Array, headers: Readonly<Record<string, string>> = {}) {
  const all = { authorization, "content-length": body.length, ...headers };
  return ask(daemon, `/v1/files/${path}`, { method: "PUT", headers: all }, Buffer.from(body));
}

describe("a large body over HTTP/1.1", () => {
  it("is stored as it was sent, with its digest, and ends the connection", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const answer = await put(daemon, path, LARGE, { "content-digest": `sha-256=:${sha256(LARGE)}:` });
    expect(answer).toMatchObject({ status: 204, headers: { connection: "close" } });
    expect(readFileSync(path).equals(LARGE)).toBe(true);
    const wrong = await put(daemon, path, LARGE, { "content-digest": `sha-256=:${sha256(Buffer.alloc(1))}:` });
    expect([wrong.status, JSON.parse(wrong.body)]).toMatchObject([400, { reason: "CHECKSUM_MISMATCH" }]);
    expect(readFileSync(path).equals(LARGE)).toBe(true);
    const line = await daemon.waitForLog((found) => found.msg === "call ended" && found.code === "ok");
    expect(line).toMatchObject({ bytesIn: LARGE.length });
  });

  it("is taken from curl, which asks before it sends, and from many at once", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    writeFileSync(source, LARGE);
    const names = Array.from({ length: 8 }, (_, index) => `copy-${index}`);
    const answers = await Promise.all(
      names.map((name) => curl(daemon, `/v1/files/${directory.path}/${name}`, "--upload-file", source)),
    );
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 204));
    for (const name of names) expect(readFileSync(`${directory.path}/${name}`).equals(LARGE)).toBe(true);
  });

  it("may come in any pieces, the first of them along with the head", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    for (const first of [0, 1, 70_000]) {
      const socket = await openSocket(daemon);
      socket.write(Buffer.concat([Buffer.from(head(path, LARGE.length)), LARGE.subarray(0, first)]));
      for (let at = first, size = 1; at < LARGE.length; at += size, size = Math.min(size * 3, 3_000_000)) {
        socket.write(LARGE.subarray(at, at + size));
        await setImmediate();
      }
      const [answer] = await once(socket, "data");
      expect(String(answer)).toMatch(/^HTTP\/1\.1 204 /);
      expect(readFileSync(path).equals(LARGE)).toBe(true);
      rmSync(path);
    }
  });

  it("is stored as it was sent by E2B's and AgentCube's clients, and as an archive", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workspace", directory.path], env: { PICOD_ACCESS_TOKEN: TOKEN } });
    const at = (name: string) => `${directory.path}/${name}`;
    const send = async (method: string, path: string, type: string, body: Buffer) => {
      const headers = { authorization, "content-type": type, "content-length": body.length };
      expect(await ask(daemon, path, { method, headers }, body)).toMatchObject({ status: 200, headers: { connection: "close" } });
    };
    // What looks like the beginning of a boundary is anywhere, at the ends of pieces too.
    const sent = Buffer.from(LARGE);
    for (let place = 0; place < sent.length - 7; place += 1009) sent.write("\r\n--cut".slice(0, 1 + (place % 7)), place);
    const part = (disposition: string, content: string | Buffer) =>
      Buffer.concat(
        [`--cut-here\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n`, content, "\r\n"].map((piece) =>
          Buffer.from(piece),
        ),
      );
    const sendForm = (path: string, ...parts: Buffer[]) =>
      send("POST", path, "multipart/form-data; boundary=cut-here", Buffer.concat([...parts, Buffer.from("--cut-here--\r\n")]));

    await sendForm(
      "/files?username=root",
      ...["first", "second"].map((name) => part(`name="file"; filename="${at(name)}"`, sent)),
    );
    await send("POST", `/files?username=root&path=${at("raw")}`, "application/octet-stream", sent);
    await sendForm("/api/files", part('name="path"', "third"), part('name="file"', sent));
    await sendForm("/api/files", part('name="file"', sent), part('name="path"', "fourth"));
    const archive = execFileSync("tar", ["-C", directory.path, "-c", "first", "raw"], { maxBuffer: 2 ** 30 });
    await send("PUT", `/v1/archive/${at("unpacked")}`, "application/x-tar", archive);
    for (const name of ["first", "second", "raw", "third", "fourth", "unpacked/first", "unpacked/raw"]) {
      expect([name, readFileSync(at(name)).equals(sent)]).toEqual([name, true]);
    }
  });

  it("that breaks off leaves what was there, and nothing open", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    for (const leave of ["destroy", "end", "resetAndDestroy"] as const) {
      const socket = await openSocket(daemon);
      socket.on("error", () => undefined).write(head(path, LARGE.length));
      await new Promise((resolve) => socket.write(LARGE.subarray(0, 15_000_000), resolve));
      await eventually("the file is open", () => openFilesIn(daemon, directory.path).length > 0);
      socket[leave]();
      await eventually("it is closed", () => openFilesIn(daemon, directory.path).length === 0);
      socket.destroy();
      expect([readFileSync(path, "utf8"), readdirSync(directory.path)]).toEqual(["old", ["file"]]);
    }
  });

  it("that does not fit is refused while it comes, with an answer", async () => {
    await using daemon = await startDaemon();
    using directory = mountedTmpfs("size=40m");
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const socket = await openSocket(daemon);
    socket.write(head(path, LARGE.length));
    await new Promise((resolve) => socket.write(LARGE.subarray(0, 9_000_000), resolve));
    // Announced, it would have fit.
    writeFileSync(`${directory.path}/other`, LARGE);
    socket.write(LARGE.subarray(9_000_000));
    // What is still on its way when the connection ends fails to be sent.
    const answer = await new Promise((resolve) => socket.once("data", resolve));
    expect(String(answer)).toMatch(/^HTTP\/1\.1 507 [\s\S]*"reason":"ENOSPC"/);
    await new Promise((resolve) => socket.once("close", resolve));
    expect([readFileSync(path, "utf8"), readdirSync(directory.path).sort()]).toEqual(["old", ["file", "other"]]);
  });

  it("is not read before the token has been looked at", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const answer = await put(daemon, `${directory.path}/file`, LARGE, { authorization: "Bearer wrong" });
    expect([answer.status, readdirSync(directory.path)]).toEqual([401, []]);
  });

  it("that is smaller leaves the connection open", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const agent = new Agent({ keepAlive: true });
    const headers = { authorization, "content-length": 4_000_000 };
    const answer = await ask(
      daemon,
      `/v1/files/${directory.path}/file`,
      { method: "PUT", headers, agent },
      LARGE.subarray(0, 4_000_000),
    );
    expect(answer).toMatchObject({ status: 204, headers: { connection: "keep-alive" } });
    agent.destroy();
  });

  it("ends with the daemon", async () => {
    using directory = temporaryDirectory();
    const daemon = await startDaemon();
    const socket = await openSocket(daemon);
    socket.on("error", () => undefined).write(head(`${directory.path}/file`, LARGE.length));
    await new Promise((resolve) => socket.write(LARGE.subarray(0, 15_000_000), resolve));
    await eventually("the file is open", () => openFilesIn(daemon, directory.path).length > 0);
    const closed = once(socket.resume(), "close");
    await daemon[Symbol.asyncDispose]();
    await closed;
    expect(readdirSync(directory.path)).toEqual([]);
  });
});
