import { execFileSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { curl } from "./support/curl.js";
import { call } from "./support/http-api.js";
import { ask, exchange, openSocket } from "./support/http1.js";
import { openFilesIn } from "./support/open-files.js";
import { CANCEL, encodeHeaders, FLAG, FRAME, frame, RawHttp2, rstStream } from "./support/raw-http2.js";

const authorization = `Bearer ${TOKEN}`;
const sha256 = (data: Uint8Array | string) => createHash("sha256").update(data).digest("base64");
const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

/** A daemon whose paths begin in a directory of its own. */
async function startWithDirectory() {
  const directory = temporaryDirectory();
  const daemon = await startDaemon({ args: ["--workdir", directory.path] });
  return {
    daemon,
    path: directory.path,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}

describe("PUT of a file", () => {
  it("stores it, new and again, with missing parents", async () => {
    await using where = await startWithDirectory();
    for (const content of ["first", "", "second"]) {
      const answer = await call(where.daemon, "PUT", "/v1/files/a/b/file", content);
      expect(answer).toMatchObject({ status: 204, body: "", headers: { etag: expect.stringMatching(/^"/) } });
      expect(answer.headers["content-length"]).toBeUndefined();
      expect(readFileSync(`${where.path}/a/b/file`, "utf8")).toBe(content);
      const { etag } = (await call(where.daemon, "HEAD", "/v1/files/a/b/file")).headers;
      expect(answer.headers.etag).toBe(etag);
    }
    expect(modeOf(`${where.path}/a/b/file`)).toBe("644");
  });

  it("keeps mode and owner, unless a mode is given", async () => {
    await using where = await startWithDirectory();
    const path = `${where.path}/file`;
    writeFileSync(path, "old");
    chmodSync(path, 0o750);
    chownSync(path, 65534, 65534);
    await call(where.daemon, "PUT", "/v1/files/file?mode=", "new");
    expect([modeOf(path), statSync(path).uid]).toEqual(["750", 65534]);
    await call(where.daemon, "PUT", "/v1/files/file?mode=0666&mode=0600", "new");
    expect([modeOf(path), readFileSync(path, "utf8")]).toEqual(["666", "new"]);
    for (const mode of ["755", "0o755", "01777", "0778", "x"]) {
      const answer = await call(where.daemon, "PUT", `/v1/files/never?mode=${mode}`, "new");
      expect.soft(answer).toMatchObject({ status: 400, json: { code: "INVALID_ARGUMENT" } });
    }
    expect(existsSync(`${where.path}/never`)).toBe(false);
  });

  it("acts as the user that is named, and syncs when asked", async () => {
    await using where = await startWithDirectory();
    chmodSync(where.path, 0o777);
    await expect(call(where.daemon, "PUT", "/v1/files/file?user=nobody&sync", "x")).resolves.toMatchObject({ status: 204 });
    expect(statSync(`${where.path}/file`).uid).toBe(65534);
    mkdirSync(`${where.path}/closed`, { mode: 0o700 });
    await expect(call(where.daemon, "PUT", "/v1/files/closed/file?user=nobody", "x")).resolves.toMatchObject({
      status: 403,
      json: { code: "PERMISSION_DENIED" },
    });
  });

  it("follows links, keeps other names out of it, and takes a slash at the end", async () => {
    await using where = await startWithDirectory();
    const { path } = where;
    writeFileSync(`${path}/target`, "old");
    symlinkSync("target", `${path}/link`);
    symlinkSync("missing", `${path}/dangling`);
    for (const name of ["link", "dangling", "slash/"]) {
      await expect(call(where.daemon, "PUT", `/v1/files/${name}`, name)).resolves.toMatchObject({ status: 204 });
    }
    const read = (name: string) => readFileSync(`${path}/${name}`, "utf8");
    expect([read("target"), read("missing"), read("slash")]).toEqual(["link", "dangling", "slash/"]);
    linkSync(`${path}/target`, `${path}/other`);
    expect(readdirSync(path).sort()).toEqual(["dangling", "link", "missing", "other", "slash", "target"]);
  });

  it.each([
    ["a directory", "dir", 400],
    ["where paths begin", "", 400],
    ["the root", "/", 400],
    ["below a file", "file/x", 400],
    ["a FIFO", "fifo", 400],
    ["a loop", "loop", 400],
    ["a long name", "x".repeat(256), 400],
    ["a NUL byte", "%00", 400],
    ["a malformed escape", "%", 400],
  ])("refuses %s", async (_title, url, status) => {
    await using where = await startWithDirectory();
    execFileSync("sh", ["-c", "mkdir dir; echo old > file; mkfifo fifo; ln -s loop loop"], { cwd: where.path });
    const answer = await call(where.daemon, "PUT", `/v1/files/${url}`, "x".repeat(100_000));
    expect(answer).toMatchObject({ status, json: { code: "INVALID_ARGUMENT" } });
    expect(readdirSync(where.path).sort()).toEqual(["dir", "fifo", "file", "loop"]);
  });

  it("says that a disk is full, at once and later, and keeps what was there", async () => {
    await using where = await startWithDirectory();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", where.path]);
    try {
      writeFileSync(`${where.path}/file`, "old");
      const body = Buffer.alloc(2_000_000);
      const headers = { authorization };
      const announced = await ask(
        where.daemon,
        "/v1/files/file",
        { method: "PUT", headers: { ...headers, "content-length": body.length } },
        body,
      );
      const chunked = await ask(where.daemon, "/v1/files/file", { method: "PUT", headers }, body);
      for (const answer of [announced, chunked]) {
        expect(answer.status).toBe(507);
        expect(JSON.parse(answer.body)).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
      }
      expect([readFileSync(`${where.path}/file`, "utf8"), readdirSync(where.path)]).toEqual(["old", ["file"]]);
    } finally {
      execFileSync("umount", [where.path]);
    }
  });

  it("refuses a part of a file", async () => {
    await using where = await startWithDirectory();
    await expect(call(where.daemon, "PUT", "/v1/files/file", "x", { "content-range": "bytes 1-1/2" })).resolves.toMatchObject({
      status: 400,
    });
    expect(readdirSync(where.path)).toEqual([]);
  });
});

describe("conditions of a PUT", () => {
  it("are those of RFC 9110", async () => {
    await using where = await startWithDirectory();
    const put = async (headers: Record<string, string>, name = "file") =>
      (await call(where.daemon, "PUT", `/v1/files/${name}`, "new", headers)).status;
    const etagNow = async () => String((await call(where.daemon, "HEAD", "/v1/files/file")).headers.etag);
    expect(await put({ "if-match": "*" })).toBe(412);
    expect(await put({ "if-match": '"x"' })).toBe(412);
    expect(await put({ "if-none-match": "*" })).toBe(204);
    expect(await put({ "if-none-match": "*" })).toBe(412);
    expect(await put({ "if-match": "*" })).toBe(204);
    const etag = await etagNow();
    expect(await put({ "if-none-match": etag })).toBe(412);
    expect(await put({ "if-match": `W/${etag}` })).toBe(412);
    expect(await put({ "if-match": `"x", ${etag}` })).toBe(204);
    expect(await put({ "if-match": etag })).toBe(412);
    expect(await put({ "if-unmodified-since": "Tue, 14 Nov 2000 22:13:20 GMT" })).toBe(412);
    expect(await put({ "if-unmodified-since": new Date(Date.now() + 5_000).toUTCString() })).toBe(204);
    expect(await put({ "if-match": etag }, "none/file")).toBe(412);
    expect(readdirSync(where.path)).toEqual(["file"]);
  });

  it("hold when the file becomes visible: of many who create one wins", async () => {
    await using where = await startWithDirectory();
    const bodies = Array.from({ length: 20 }, (_, number) => `writer ${number} `.repeat(20_000));
    const puts = bodies.map((body) => call(where.daemon, "PUT", "/v1/files/file", body, { "if-none-match": "*" }));
    const statuses = (await Promise.all(puts)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([204, ...Array(19).fill(412)]);
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe(bodies[statuses.indexOf(204)]);
  });
});

describe("Expect: 100-continue", () => {
  it("is answered when the body is wanted, and the connection goes on", async () => {
    await using where = await startWithDirectory();
    const { status, stderr } = await curl(
      where.daemon,
      "/v1/files/file",
      "-v",
      "-X",
      "PUT",
      "-d",
      "content",
      "-H",
      "Expect: 100-continue",
    );
    expect([status, /< HTTP\/1.1 100 Continue/.test(stderr)]).toEqual([204, true]);
    expect(stderr).toMatch(/Connection #0 to host .* left intact/);
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("content");
  });

  it("is not answered when it is refused, and the connection ends", async () => {
    await using where = await startWithDirectory();
    writeFileSync(`${where.path}/file`, "old");
    const head = (path: string, more: string) =>
      `PUT ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nexpect: 100-continue\r\ncontent-length: 5\r\n${more}\r\n`;
    for (const [path, more, status] of [
      ["/v1/files/file", "if-none-match: *\r\n", 412],
      ["/v1/files/file/x", "", 400],
      ["/v1/files/file?mode=9", "", 400],
    ] as const) {
      // It never sends the body: who waited for it would wait for ever.
      const received = await exchange(where.daemon, head(path, more));
      expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(received).toMatch(/connection: close/i);
    }
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("old");
  });

  it("is understood over HTTP/2", async () => {
    await using where = await startWithDirectory();
    const args = ["--http2-prior-knowledge", "-X", "PUT", "-d", "content", "-H", "Expect: 100-continue"];
    expect((await curl(where.daemon, "/v1/files/file", ...args)).status).toBe(204);
    expect((await curl(where.daemon, "/v1/files/file", ...args, "-H", "if-none-match: *")).status).toBe(412);
  });
});

describe("an encoded body", () => {
  it("of gzip is decoded", async () => {
    await using where = await startWithDirectory();
    const content = "a line of text\n".repeat(100_000);
    const put = (body: Uint8Array, coding = "gzip") =>
      ask(where.daemon, "/v1/files/file", { method: "PUT", headers: { authorization, "content-encoding": coding } }, body);
    const gzip = gzipSync(content);
    await expect(put(gzip)).resolves.toMatchObject({ status: 204 });
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe(content);
    for (const body of [gzip.subarray(0, -5), Buffer.from("no gzip"), Buffer.alloc(0)]) {
      const answer = await put(body);
      expect.soft([answer.status, JSON.parse(answer.body || "{}").code]).toEqual([400, "INVALID_ARGUMENT"]);
    }
    await expect(put(gzip, "br")).resolves.toMatchObject({ status: 400 });
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe(content);
  });

  it("as a form stores its part named file", async () => {
    await using where = await startWithDirectory();
    const content = randomBytes(3_000_000);
    writeFileSync(`${where.path}/source`, content);
    const put = (...args: string[]) => curl(where.daemon, "/v1/files/stored", "-X", "PUT", ...args);
    expect((await put("-F", "x=1", "-F", `file=@${where.path}/source;filename=../../x`, "-F", "file=second")).status).toBe(204);
    expect(readFileSync(`${where.path}/stored`).equals(content)).toBe(true);
    const missing = await put("-F", "x=1");
    expect([missing.status, JSON.parse(missing.body.toString()).message]).toEqual([
      400,
      'multipart body is missing the required "file" part',
    ]);
    expect(readFileSync(`${where.path}/stored`).equals(content)).toBe(true);
  });

  it("as a form is read byte by byte, and must be whole", async () => {
    await using where = await startWithDirectory();
    const part = 'content-disposition: form-data; name="file"; filename="a;name=b"\r\ncontent-type: x/y\r\n\r\na\r\n--B--b';
    const form = `preamble\r\n--Bo\r\n\r\nno headers\r\n--Bo\r\n${part}\r\n--Bo--\r\nepilogue`;
    const headers = { authorization, "content-type": 'multipart/form-data; boundary="Bo"' };
    const put = (body: string) => ask(where.daemon, "/v1/files/file", { method: "PUT", headers }, body);
    await expect(put(form)).resolves.toMatchObject({ status: 204 });
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("a\r\n--B--b");
    const bytes = [...form].map((byte) => `1\r\n${byte}\r\n`).join("");
    const head = `PUT /v1/files/slow HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: ${headers["content-type"]}`;
    const slow = await exchange(
      where.daemon,
      `${head}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n${bytes}0\r\n\r\n`,
    );
    expect(slow).toMatch(/^HTTP\/1.1 204/);
    expect(readFileSync(`${where.path}/slow`, "utf8")).toBe("a\r\n--B--b");
    for (const body of ["", "--Bo", form.slice(0, form.indexOf("--Bo--")), form.replace("--Bo\r\n", "--Bo x\r\n")]) {
      const answer = await put(body);
      expect
        .soft([answer.status, JSON.parse(answer.body || "{}").message])
        .toEqual([400, expect.stringMatching(/^invalid multipart body: /)]);
    }
  });
});

describe("an announced digest", () => {
  it("is verified before the file is visible", async () => {
    await using where = await startWithDirectory();
    writeFileSync(`${where.path}/file`, "old");
    const put = (headers: Record<string, string>, body = "new") => call(where.daemon, "PUT", "/v1/files/file", body, headers);
    for (const field of ["content-digest", "repr-digest"]) {
      expect(await put({ [field]: `sha-256=:${sha256("other")}:` })).toMatchObject({
        status: 400,
        json: { code: "INVALID_ARGUMENT" },
      });
      expect(await put({ [field]: "sha-256=x" })).toMatchObject({ status: 400 });
    }
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("old");
    const sha512 = createHash("sha512").update("new").digest("base64");
    const digests = `sha-256=:${sha256("new")}:, sha-512=:${sha512}:, constructor=:AA==:, md5=:AA==:`;
    expect((await put({ "content-digest": digests, "repr-digest": digests })).status).toBe(204);
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("new");
  });
});

describe("an upload", () => {
  it("of 100 MB arrives whole, over HTTP/1.1 and HTTP/2", async () => {
    await using where = await startWithDirectory();
    const content = randomBytes(100_000_000);
    writeFileSync(`${where.path}/source`, content);
    const digest = ["-H", `content-digest: sha-256=:${sha256(content)}:`];
    for (const args of [[], ["--http2-prior-knowledge"], ["-H", "transfer-encoding: chunked"]]) {
      const { status } = await curl(where.daemon, "/v1/files/stored", "-T", `${where.path}/source`, ...digest, ...args);
      expect([status, sha256(readFileSync(`${where.path}/stored`))]).toEqual([204, sha256(content)]);
    }
    const answer = await fetch(`${where.daemon.url}/v1/files/fetched`, {
      method: "PUT",
      body: new Blob([content]),
      headers: { authorization },
    });
    expect([answer.status, sha256(readFileSync(`${where.path}/fetched`))]).toEqual([204, sha256(content)]);
    expect(readdirSync(where.path).sort()).toEqual(["fetched", "source", "stored"]);
  }, 120_000);

  const BODY = "new content";
  const cuts: [string, (daemon: Daemon, length: number, id: string) => Promise<void>, number][] = [
    ...(["end", "resetAndDestroy"] as const).map((leave): [string, (typeof cuts)[number][1], number] => [
      `HTTP/1.1, ${leave}`,
      async (daemon, length, id) => {
        const socket = (await openSocket(daemon)).resume();
        socket.write(
          `PUT /v1/files/dir/file HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nx-request-id: ${id}\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY.slice(0, length)}`,
        );
        await ask(daemon, "/healthz");
        socket[leave]();
        await daemon.waitForLog(({ requestId }) => requestId === id);
        socket.destroy();
      },
      BODY.length,
    ]),
    [
      "HTTP/2, cancelled",
      async (daemon, length, id) => {
        using raw = await RawHttp2.open(daemon.port);
        const headers = { authorization, "x-request-id": id };
        const pseudo = { ":method": "PUT", ":scheme": "http", ":authority": "x", ":path": "/v1/files/dir/file" };
        raw.send(
          frame(FRAME.headers, FLAG.endHeaders, 1, encodeHeaders(Object.entries({ ...pseudo, ...headers }))),
          frame(FRAME.data, 0, 1, Buffer.from(BODY.slice(0, length))),
        );
        await ask(daemon, "/healthz");
        raw.send(rstStream(1, CANCEL));
        await daemon.waitForLog(({ requestId }) => requestId === id);
      },
      BODY.length + 1,
    ],
  ];

  it.each(cuts)("that is cut after any byte leaves nothing (%s)", async (_title, cut, lengths) => {
    await using where = await startWithDirectory();
    for (let length = 0; length < lengths; length++) {
      const id = randomUUID();
      await cut(where.daemon, length, id);
      expect(readdirSync(where.path), `cut after ${length} bytes`).toEqual([]);
      expect(where.daemon.logs.find(({ requestId }) => requestId === id)?.code).toBe("canceled");
    }
    await eventually("all is closed", () => openFilesIn(where.daemon, where.path).length === 0);
  });

  it("can be followed by other requests on its connection", async () => {
    await using where = await startWithDirectory();
    const put = (name: string, body: string, more = "") =>
      `PUT /v1/files/${name} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;
    const received = await exchange(
      where.daemon,
      put("a", "first") + put("b", "second") + put("a", "third", "connection: close\r\n"),
    );
    expect(received.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 204", "HTTP/1.1 204", "HTTP/1.1 204"]);
    expect([readFileSync(`${where.path}/a`, "utf8"), readFileSync(`${where.path}/b`, "utf8")]).toEqual(["third", "second"]);
  });

  it("of several at once leaves one whole", async () => {
    await using where = await startWithDirectory();
    const bodies = Array.from({ length: 8 }, (_, number) => Buffer.alloc(2_000_000, `${number}`));
    const puts = bodies.map((body) => ask(where.daemon, "/v1/files/file", { method: "PUT", headers: { authorization } }, body));
    expect((await Promise.all(puts)).map(({ status }) => status)).toEqual(Array(8).fill(204));
    const stored = readFileSync(`${where.path}/file`);
    expect(bodies.some((body) => body.equals(stored))).toBe(true);
  });
});
