import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { connect as connectHttp2, constants } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { curl } from "./support/curl.js";
import { call } from "./support/http-api.js";
import { exchange, openSocket } from "./support/http1.js";
import { openFilesIn } from "./support/open-files.js";

const DIGITS = "0123456789";
const authorization = `Bearer ${TOKEN}`;
const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("base64");

let daemon: Daemon;
let directory: TemporaryDirectory;
/** Makes a file and returns its address. */
function file(name: string, content: string | Uint8Array): string {
  writeFileSync(`${directory.path}/${name}`, content);
  return `/v1/files/${name}`;
}

beforeAll(async () => {
  directory = temporaryDirectory();
  daemon = await startDaemon({ args: ["--workdir", directory.path] });
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

describe("GET of a file", () => {
  it("answers with what it is", async () => {
    const url = file("plain", DIGITS);
    utimesSync(`${directory.path}/plain`, 1_700_000_000.9, 1_700_000_000.9);
    const { status, headers, body } = await curl(daemon, url);
    expect([status, body.toString()]).toEqual([200, DIGITS]);
    expect(headers).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": "10",
      "last-modified": "Tue, 14 Nov 2023 22:13:20 GMT",
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      etag: expect.stringMatching(/^"[\w-]+"$/),
    });
    const head = await call(daemon, "HEAD", url);
    expect([head.status, head.body, head.headers.etag]).toEqual([200, "", headers.etag]);
    expect(head.headers).toMatchObject({ "content-length": "10", "accept-ranges": "bytes" });
  });

  it.each([
    ["a slash at the end", "dir/plain/"],
    ["an escaped slash", "dir%2Fplain"],
    ["dots", "./dir/./../dir//plain"],
    ["escaped dots", "dir%2F%2E%2E%2Fdir%2Fplain"],
    ["an absolute path", () => `/${directory.path}/dir/plain`],
    ["an escaped absolute path", () => `${directory.path}/dir/plain`.replaceAll("/", "%2F")],
    ["a link", "link"],
    ["a plus sign", "a+b"],
    ["a tilde", "~"],
    ["a percent sign", "100%25"],
    ["bytes that are not UTF-8", "%ff"],
    ["the character that stands for such a byte", "%ee%bf%bf"],
    ["other characters", "%c3%a4%20%F0%9F%98%80"],
  ])("takes %s", async (_title, path) => {
    mkdirSync(`${directory.path}/dir`, { recursive: true });
    for (const name of ["dir/plain", "a+b", "~", "100%", "ä 😀"]) writeFileSync(`${directory.path}/${name}`, "content");
    writeFileSync(Buffer.concat([Buffer.from(`${directory.path}/`), Buffer.of(0xff)]), "content");
    execFileSync("ln", ["-sfn", "dir/plain", `${directory.path}/link`]);
    const { status, body } = await curl(daemon, `/v1/files/${typeof path === "string" ? path : path()}`, "--path-as-is");
    expect([status, body.toString()]).toEqual([200, "content"]);
  });

  it.each<[string, string, number, string]>([
    ["no file", "none", 404, "NOT_FOUND"],
    ["a file as a directory", "plain/x", 400, "INVALID_ARGUMENT"],
    ["a loop", "loop", 400, "INVALID_ARGUMENT"],
    ["a NUL byte", "a%00b", 400, "INVALID_ARGUMENT"],
    ["a long name", "x".repeat(256), 400, "INVALID_ARGUMENT"],
    ["a long path", "x/".repeat(2100), 400, "INVALID_ARGUMENT"],
    ["a malformed escape", "%zz", 400, "INVALID_ARGUMENT"],
    ["a cut escape", "a%2", 400, "INVALID_ARGUMENT"],
    ["a FIFO", "fifo", 400, "INVALID_ARGUMENT"],
    ["a socket", "socket", 400, "INVALID_ARGUMENT"],
    ["a device", "%2Fdev%2Fnull", 400, "INVALID_ARGUMENT"],
    ["no such user", "plain?user=nobody-of-that-name", 400, "INVALID_ARGUMENT"],
    ["another's file", "secret?user=nobody", 403, "PERMISSION_DENIED"],
    ["no boolean", "plain?inline=x", 400, "INVALID_ARGUMENT"],
  ])("refuses %s", async (_title, path, status, code) => {
    file("plain", DIGITS);
    file("secret", "secret");
    chmodSync(`${directory.path}/secret`, 0o600);
    execFileSync("sh", [
      "-c",
      `cd ${directory.path}; ln -sfn loop loop; [ -e fifo ] || mkfifo fifo; [ -e socket ] || python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`,
    ]);
    for (const method of ["GET", "HEAD"]) {
      const answer = await call(daemon, method, `/v1/files/${path}`);
      expect(answer.status).toBe(status);
      expect(answer.headers["content-type"]).toBe("application/json");
      if (method === "GET") expect(answer.json).toMatchObject({ code, message: expect.stringMatching(/./) });
    }
  });

  it("answers other methods, and requests without a token, in the same words", async () => {
    for (const method of ["POST", "PATCH", "OPTIONS"]) {
      const answer = await call(daemon, method, "/v1/files/plain");
      expect(answer).toMatchObject({
        status: 405,
        json: { code: "UNIMPLEMENTED" },
        headers: { allow: "GET, HEAD, PUT, DELETE" },
      });
    }
    const answer = await call(daemon, "GET", "/v1/files/plain", undefined, { authorization: "" });
    expect(answer).toMatchObject({ status: 401, json: { code: "UNAUTHENTICATED" } });
  });

  it("reads what the kernel does not know the size of", async () => {
    const processes = await curl(daemon, "/v1/files//proc/self/status");
    expect([processes.status, processes.body.toString()]).toEqual([200, expect.stringContaining(`Pid:\t${daemon.pid}`)]);
    expect(processes.headers["accept-ranges"]).toBe("none");
    const page = await curl(daemon, "/v1/files//sys/kernel/mm/transparent_hugepage/enabled");
    expect([page.status, page.body.toString()]).toEqual([200, expect.stringMatching(/^.{1,100}\n$/)]);
    const large = await curl(daemon, "/v1/files//proc/kallsyms", "-r", "0-3");
    expect([large.status, large.body.length > 65_536, large.headers["transfer-encoding"]]).toEqual([200, true, "chunked"]);
  });

  it("sends an empty file, whatever part of it is asked for", async () => {
    const { status, headers } = await curl(daemon, file("empty", ""), "-r", "0-");
    expect([status, headers["content-length"]]).toEqual([200, "0"]);
  });

  it("names it for whoever saves it", async () => {
    const url = file('a "ä".html', "<script>");
    const disposition = async (query: string) => (await curl(daemon, encodeURI(url) + query)).headers["content-disposition"];
    expect(await disposition("")).toBeUndefined();
    expect(await disposition("?download")).toBe(`attachment; filename="a ___.html"; filename*=UTF-8''a%20%22%C3%A4%22.html`);
    expect(await disposition("?download=b%0d%0ax:y")).toBe('attachment; filename="b__x:y"');
    expect(await disposition("?inline")).toMatch(/^inline; /);
  });

  it("shows inline only what cannot run scripts", async () => {
    const typeOf = async (name: string) => (await curl(daemon, `${file(name, "x")}?inline`)).headers["content-type"];
    expect(await typeOf("a.txt")).toBe("text/plain; charset=utf-8");
    expect(await typeOf("a.PNG")).toBe("image/png");
    for (const name of ["a.html", "a.svg", "a.xml", "a.xhtml", "a", "a.constructor"]) {
      expect.soft(await typeOf(name), name).toBe("application/octet-stream");
    }
  });
});

describe("parts of a file", () => {
  it.each<[string, string, number, string]>([
    ["from the beginning", "bytes=0-3", 206, "0123"],
    ["from the middle on", "bytes=7-", 206, "789"],
    ["its end", "bytes=-2", 206, "89"],
    ["more than there is", "bytes=8-99", 206, "89"],
    ["more than there is from its end", "bytes=-99", 206, DIGITS],
    ["of which one is there", "bytes=20-30,1-2", 206, "12"],
    ["in spaces and capitals", "BYTES = 1 - 2", 206, "12"],
    ["in another unit", "lines=1-2", 200, DIGITS],
    ["that are more than the whole", "bytes=0-,0-", 200, DIGITS],
    ["in great number", `bytes=${"1-1,".repeat(65)}`, 200, DIGITS],
  ])("are sent: %s", async (_title, range, status, content) => {
    const answer = await call(daemon, "GET", file("digits", DIGITS), undefined, { range });
    expect([answer.status, answer.body]).toEqual([status, content]);
    if (status === 206) expect(answer.headers["content-range"]).toMatch(/^bytes \d-\d\/10$/);
  });

  it.each(["bytes=10-", "bytes=-0", "bytes=5-4", "bytes=x", "bytes=", "bytes=1", "bytes=-"])("are refused: %s", async (range) => {
    const answer = await call(daemon, "GET", file("digits", DIGITS), undefined, { range });
    expect(answer).toMatchObject({
      status: 416,
      json: { code: "OUT_OF_RANGE" },
      headers: { "content-range": "bytes */10" },
    });
  });

  it("are sent in one answer", async () => {
    const { status, headers, body } = await curl(daemon, file("digits", DIGITS), "-r", "0-1,4-4,-2");
    expect([status, headers["content-length"]]).toEqual([206, String(body.length)]);
    const boundary = /^multipart\/byteranges; boundary=(\w+)$/.exec(headers["content-type"] ?? "")?.[1];
    const parts = body.toString().split(`\r\n--${boundary}`);
    expect(parts.map((part) => part.split("\r\n\r\n")[1])).toEqual([undefined, "01", "4", "89", undefined]);
    expect(parts[2]).toContain("\r\ncontent-range: bytes 4-4/10\r\n");
    expect(parts[4]).toBe("--\r\n");
  });

  it("are not what HEAD is about", async () => {
    await expect(call(daemon, "HEAD", file("digits", DIGITS), undefined, { range: "bytes=50-" })).resolves.toMatchObject({
      status: 200,
    });
  });

  it("of a sparse file of 5 GiB are found", async () => {
    const url = file("sparse", "");
    execFileSync("sh", ["-c", `truncate -s 5G ${directory.path}/sparse; printf end >> ${directory.path}/sparse`]);
    const { headers, body } = await curl(daemon, url, "-r", "5368709119-");
    expect([body, headers["content-range"]]).toEqual([Buffer.from("\0end"), "bytes 5368709119-5368709122/5368709123"]);
    const parts = await curl(daemon, url, "-r", "4294967295-4294967297,-2");
    expect(parts.body.toString("latin1")).toMatch(/\r\n\r\n\0\0\0\r\n[\s\S]*\r\n\r\nnd\r\n/);
  });

  it("let curl go on with a download, as long as it is the same file", async () => {
    const url = file("resumed", randomBytes(300_000));
    const target = `${directory.path}/resumed-copy`;
    const whole = readFileSync(`${directory.path}/resumed`);
    writeFileSync(target, whole.subarray(0, 100_000));
    execFileSync("curl", ["-sS", "-f", "-C", "-", "-o", target, "-H", `authorization: ${authorization}`, daemon.url + url]);
    expect(readFileSync(target).equals(whole)).toBe(true);
    const { etag = "", "last-modified": date = "" } = (await curl(daemon, url)).headers;
    for (const [ifRange, status] of [
      [etag, 206],
      [`W/${etag}`, 200],
      ['"other"', 200],
      [date, 206],
      ["Tue, 14 Nov 2023 22:13:20 GMT", 200],
    ] as const) {
      const answer = await curl(daemon, url, "-r", "0-0", "-H", `if-range: ${ifRange}`);
      expect.soft(answer.status, ifRange).toBe(status);
    }
  });
});

describe("conditions of a GET", () => {
  it("are those of RFC 9110", async () => {
    const url = file("conditional", DIGITS);
    utimesSync(`${directory.path}/conditional`, 1_700_000_000, 1_700_000_000);
    const { etag = "" } = (await curl(daemon, url)).headers;
    const [before, same, after] = [-1, 0, 1].map((seconds) => new Date((1_700_000_000 + seconds) * 1000).toUTCString());
    for (const [condition, status] of [
      [`if-match: ${etag}`, 200],
      [`if-match: "x", ${etag}`, 200],
      ["if-match: *", 200],
      ['if-match: "x"', 412],
      [`if-match: W/${etag}`, 412],
      [`if-none-match: ${etag}`, 304],
      [`if-none-match: "x", W/${etag}`, 304],
      ["if-none-match: *", 304],
      ['if-none-match: "x"', 200],
      [`if-modified-since: ${same}`, 304],
      [`if-modified-since: ${after}`, 304],
      [`if-modified-since: ${before}`, 200],
      ["if-modified-since: yesterday", 200],
      [`if-unmodified-since: ${same}`, 200],
      [`if-unmodified-since: ${before}`, 412],
    ] as const) {
      const answer = await curl(daemon, url, "-H", condition);
      expect.soft(answer.status, condition).toBe(status);
      if (status === 304) expect.soft([answer.headers.etag, answer.body.length]).toEqual([etag, 0]);
      if (status === 412) expect.soft(JSON.parse(answer.body.toString())).toMatchObject({ code: "FAILED_PRECONDITION" });
    }
    const precedence = await curl(daemon, url, "-H", 'if-none-match: "x"', "-H", `if-modified-since: ${same}`);
    expect(precedence.status).toBe(200);
  });
});

describe("gzip", () => {
  const text = "a line of a text\n".repeat(1000);

  it.each<[string, string, boolean]>([
    ["nothing", "", false],
    ["a library's own list", "gzip, deflate", false],
    ["a library's own list, asked for in the query", "gzip, deflate?", true],
    ["a preference", "gzip, identity;q=0.5", true],
    ["a lower preference", "gzip;q=0.4, identity;q=0.5", false],
    ["no identity", "gzip;q=0.1, *;q=0", true],
    ["no gzip, asked for in the query", "br?", false],
    ["gzip refused", "gzip;q=0, identity;q=0?", false],
  ])("is sent for what it should be: %s", async (_title, accept, expected) => {
    const url = file("text", text) + (accept.endsWith("?") ? "?gzip" : "");
    const { headers, body } = await curl(daemon, url, "-H", `accept-encoding: ${accept.replace("?", "")}`);
    expect(headers["content-encoding"]).toBe(expected ? "gzip" : undefined);
    expect(headers.vary).toBe("accept-encoding");
    if (!expected) return expect(body.length).toBe(text.length);
    expect(body.length).toBeLessThan(1000);
    expect(headers.etag).toMatch(/^W\/"/);
    expect(headers["content-length"]).toBeUndefined();
    expect(execFileSync("gzip", ["-dc"], { input: body, encoding: "utf8" })).toBe(text);
  });

  it("is undone by curl, of a large file too", async () => {
    const large = Buffer.from(text.repeat(400));
    const { headers, body } = await curl(daemon, `${file("large-text", large)}?gzip`, "--compressed");
    expect([headers["content-encoding"], body.equals(large)]).toEqual(["gzip", true]);
  });

  it("is not made of what is random or tiny", async () => {
    for (const content of [randomBytes(100_000), "tiny"]) {
      const { headers } = await curl(daemon, `${file("incompressible", content)}?gzip`, "--compressed");
      expect(headers["content-encoding"]).toBeUndefined();
    }
  });
});

describe("a digest", () => {
  it("is sent to whoever wants it", async () => {
    const content = randomBytes(700_000);
    const url = file("digested", content);
    const field = `sha-256=:${sha256(content)}:`;
    const wants = ["-H", "want-repr-digest: sha-512=2, sha-256=10"];
    expect((await curl(daemon, url, ...wants)).headers["repr-digest"]).toBe(field);
    expect((await curl(daemon, url, "-I", ...wants)).headers["repr-digest"]).toBe(field);
    const part = await curl(daemon, url, "-r", "5-6", ...wants);
    expect([part.status, part.headers["repr-digest"]]).toEqual([206, field]);
    expect((await curl(daemon, url, "-H", "want-repr-digest: sha-256=0, md5=9")).headers["repr-digest"]).toBeUndefined();
  });
});

describe("a download", () => {
  it("of 100 MB arrives whole, over HTTP/1.1 and HTTP/2", async () => {
    const content = randomBytes(100_000_000);
    const url = file("huge", content);
    for (const args of [[], ["--http2-prior-knowledge"]]) {
      const { status, body } = await curl(daemon, url, ...args);
      expect([status, sha256(body)]).toEqual([200, sha256(content)]);
    }
    const response = await fetch(daemon.url + url, { headers: { authorization } });
    expect(sha256(new Uint8Array(await response.arrayBuffer()))).toBe(sha256(content));
  }, 120_000);

  it("waits for a reader that pauses, without keeping the file in memory", async () => {
    const url = file("huge-paused", "");
    truncateSync(`${directory.path}/huge-paused`, 200_000_000);
    const before = daemon.rss();
    const socket = await openSocket(daemon);
    socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\nconnection: close\r\n\r\n`);
    await once(socket, "readable");
    await eventually("it reads", () => openFilesIn(daemon, directory.path).length > 0);
    for (let round = 0; round < 20; round++) await call(daemon, "GET", "/healthz");
    expect(daemon.rss() - before).toBeLessThan(60_000_000);
    // It is the same file to its end, whatever has its name.
    writeFileSync(`${directory.path}/replacement`, "other");
    renameSync(`${directory.path}/replacement`, `${directory.path}/huge-paused`);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await once(socket, "close");
    expect(bytes).toBeGreaterThan(200_000_000);
    await eventually("the file is closed", () => openFilesIn(daemon, directory.path).length === 0);
  });

  it("that nobody takes any longer is ended", async () => {
    const url = file("huge-left", "");
    truncateSync(`${directory.path}/huge-left`, 500_000_000);
    for (const leave of ["destroy", "resetAndDestroy"] as const) {
      const socket = await openSocket(daemon);
      socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`);
      await once(socket, "readable");
      socket[leave]();
      await eventually("the file is closed", () => openFilesIn(daemon, directory.path).length === 0);
    }
  });

  it.each(["HTTP/1.1", "HTTP/2"])("of a file that shrinks is broken off (%s)", async (version) => {
    const url = file("shrinking", "");
    truncateSync(`${directory.path}/shrinking`, 200_000_000);
    let bytes = 0;
    let ended = false;
    if (version === "HTTP/1.1") {
      const response = await fetch(daemon.url + url, { headers: { authorization } });
      const reader = response.body?.getReader();
      await reader?.read();
      truncateSync(`${directory.path}/shrinking`, 1_000_000);
      await expect(
        (async () => {
          while (!(await reader?.read())?.done);
        })(),
      ).rejects.toThrow();
      return;
    }
    const session = connectHttp2(daemon.url);
    const stream = session.request({ ":path": url, authorization });
    stream.on("end", () => {
      ended = true;
    });
    await once(stream, "readable");
    truncateSync(`${directory.path}/shrinking`, 1_000_000);
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const [error] = await once(stream, "error").catch((reason: Error) => [reason]);
    expect([(error as Error).message, ended]).toEqual([expect.stringContaining("NGHTTP2_INTERNAL_ERROR"), false]);
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    expect(bytes).toBeLessThan(200_000_000);
    session.close();
  });

  it("is one of several on a connection", async () => {
    const get = (url: string, more = "") => `GET ${url} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n${more}\r\n`;
    const [small, large] = [file("small", DIGITS), file("pipelined", "x".repeat(3_000_000))];
    const received = await exchange(
      daemon,
      get(large) + get(small) + get(small, "range: bytes=2-3\r\n") + get("/v1/files/none") + get(small, "connection: close\r\n"),
    );
    expect(received.match(/HTTP\/1.1 \d+/g)?.map((line) => Number(line.slice(9)))).toEqual([200, 200, 206, 404, 200]);
    expect(received).toMatch(/x\r?\n?HTTP\/1.1 200[\s\S]*\r\n\r\n0123456789HTTP\/1.1 206[\s\S]*\r\n\r\n23HTTP/);
  });
});

describe("with --root", () => {
  it("paths are those of the root, and nothing leads out of it", async () => {
    using root = temporaryDirectory();
    const inner = `${root.path}/root`;
    mkdirSync(`${inner}/dir`, { recursive: true });
    writeFileSync(`${inner}/dir/file`, "inside");
    writeFileSync(`${root.path}/secret`, "outside");
    writeFileSync(`${inner}/~`, "inside");
    symlinkSync("../../secret", `${inner}/dir/out`);
    symlinkSync("/dir/file", `${inner}/absolute`);
    symlinkSync(`${realpathSync(inner)}/dir`, `${inner}/as-commands-see-it`);
    await using confined = await startDaemon({ args: ["--root", inner] });
    const encoded = (path: string) => `/v1/files/${path.replaceAll("/", "%2F")}`;
    for (const url of [
      "/v1/files/dir/file",
      "/v1/files//dir/file",
      encoded("/dir/file"),
      encoded(`${inner}/dir/file`),
      encoded("/../../dir/file"),
      "/v1/files/absolute",
      "/v1/files/as-commands-see-it/file",
      "/v1/files/~",
    ]) {
      const { status, body } = await curl(confined, url, "--path-as-is");
      expect.soft([status, body.toString()], url).toEqual([200, "inside"]);
    }
    for (const [url, status] of [
      [encoded("../secret"), 403],
      [encoded("dir/../../secret"), 403],
      [encoded(`${root.path}/secret`), 404],
      ["/v1/files/dir/out", 403],
      [encoded("/etc/passwd"), 404],
    ] as const) {
      const answer = await curl(confined, url);
      expect.soft(answer.status, url).toBe(status);
    }
    const outside = await call(confined, "GET", encoded("../secret"));
    expect(outside.json).toMatchObject({
      code: "PERMISSION_DENIED",
      message: "path traversal outside sandbox root is forbidden",
    });
    const { entries } = (await call(confined, "GET", "/v1/files/")).json;
    expect(entries.map(({ name, type }: { name: string; type: string }) => [name, type])).toEqual([
      ["absolute", "file"],
      ["as-commands-see-it", "directory"],
      ["dir", "directory"],
      ["~", "file"],
    ]);
    expect((await call(confined, "PUT", "/v1/files/dir/out", "x")).status).toBe(403);
    expect((await call(confined, "PUT", "/v1/files/as-commands-see-it/file", "anew")).status).toBe(204);
    expect(readFileSync(`${inner}/dir/file`, "utf8")).toBe("anew");
    expect((await call(confined, "DELETE", "/v1/files/as-commands-see-it/file")).status).toBe(204);
    expect((await call(confined, "DELETE", "/v1/files/as-commands-see-it")).status).toBe(204);
    expect(readdirSync(inner)).toEqual(["absolute", "dir", "~"]);
    expect(statSync(`${root.path}/secret`).size).toBe(7);
  });
});
