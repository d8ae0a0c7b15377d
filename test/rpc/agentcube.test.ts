import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { curl } from "./support/curl.js";
import { type Answer, call } from "./support/http-api.js";
import { ask, openSocket } from "./support/http1.js";

let daemon: Daemon;
let directory: TemporaryDirectory;
let workspace: string;

beforeAll(async () => {
  directory = temporaryDirectory();
  workspace = join(realpathSync(directory.path), "not/there/yet");
  daemon = await startDaemon({ args: ["--workspace", workspace], env: { PICOD_ACCESS_TOKEN: TOKEN, FROM_DAEMON: "yes" } });
});
afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const execute = (body: object) => call(daemon, "POST", "/api/execute", body);
const upload = (body: object | string, headers: Record<string, string> = {}) => call(daemon, "POST", "/api/files", body, headers);
const base64 = (content: string | Uint8Array) => Buffer.from(content).toString("base64");
const inWorkspace = (name: string) => join(workspace, name);
const error = ({ status, body }: Answer) => {
  const { error, code } = JSON.parse(body);
  return [status, error, code];
};

describe("POST /api/execute", () => {
  it("makes the workspace, runs a program in it and tells how it went", async () => {
    const { status, json } = await execute({
      command: ["sh", "-c", "pwd; echo oh >&2; echo $FROM_DAEMON $MINE; exit 3"],
      env: { MINE: "too" },
    });
    expect(status).toBe(200);
    expect(json).toEqual({
      stdout: `${workspace}\nyes too\n`,
      stderr: "oh\n",
      exit_code: 3,
      duration: expect.any(Number),
      start_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/),
      end_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/),
    });
    expect(Date.parse(json.end_time)).toBeGreaterThanOrEqual(Date.parse(json.start_time));
    expect(Math.abs(Date.now() - Date.parse(json.end_time))).toBeLessThan(60_000);
  });

  it("takes arguments as they are, and reads no input", async () => {
    const { json } = await execute({ command: ["printf", "%s|", "$HOME", "a b", "*"] });
    expect(json).toMatchObject({ stdout: "$HOME|a b|*|", exit_code: 0 });
    expect((await execute({ command: ["cat"] })).json).toMatchObject({ stdout: "", exit_code: 0 });
  });

  it("makes the working directory, within the workspace", async () => {
    for (const working_dir of ["deep/er", "/deep/er", "./deep/../deep/er/"]) {
      expect((await execute({ command: ["pwd"], working_dir })).json.stdout, working_dir).toBe(`${inWorkspace("deep/er")}\n`);
    }
    symlinkSync("/etc", inWorkspace("out"));
    writeFileSync(inWorkspace("file"), "");
    for (const [working_dir, why] of [
      ["../elsewhere", "access denied: path '../elsewhere' escapes workspace jail"],
      ["out", "access denied: path 'out' escapes workspace jail"],
      ["file", "cannot make the directory /file: it is a file"],
    ]) {
      const answer = await execute({ command: ["pwd"], working_dir });
      expect(error(answer)).toEqual([400, expect.stringContaining(`Invalid working directory: ${why}`), 400]);
    }
  });

  it("ends a whole tree that takes too long, and says so with 124, before its client gives up", async () => {
    const started = performance.now();
    const command = ["sh", "-c", "trap '' TERM; echo begun; setsid sleep 1000.375 & sleep 1000.375"];
    const { json } = await execute({ command, timeout: "1s" });
    expect(json).toMatchObject({ stdout: "begun\n", stderr: "Command timed out after 1 seconds", exit_code: 124 });
    expect(performance.now() - started).toBeLessThan(3000);
    await eventually("they are gone", () => processesNamed("1000.375").length === 0);
    expect((await execute({ command: ["sleep", "10"], timeout: "100ms" })).json.stderr).toBe(
      "Command timed out after 0.1 seconds",
    );
  });

  it("ends a command whose caller has gone", async () => {
    const gone = fetch(`${daemon.url}/api/execute`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify({ command: ["sleep", "1000.4375"] }),
      signal: AbortSignal.timeout(1000),
    });
    await expect(gone).rejects.toThrow();
    await eventually("it is gone", () => processesNamed("1000.4375").length === 0);
  });

  it("answers with 1 when there is nothing to run, and with -1 for a signal, as Go does", async () => {
    expect((await execute({ command: ["no-such-program"] })).json).toMatchObject({
      exit_code: 1,
      stdout: "",
      stderr: "program not found: no-such-program",
    });
    expect((await execute({ command: ["/etc/passwd"] })).json).toMatchObject({ exit_code: 1 });
    expect((await execute({ command: ["sh", "-c", "kill -9 $$"] })).json).toMatchObject({ exit_code: -1 });
  });

  it("gives much output whole, and of too much the beginning and the end", async () => {
    const much = await execute({ command: ["sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x"] });
    expect(much.json.stdout.length).toBe(20_000_000);
    const cut = await execute({ command: ["sh", "-c", "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo last"] });
    expect(cut.json.stdout).toMatch(/^first\nx+\n\[picod: \d+ bytes omitted\]\nx+last\n$/);
    expect((await execute({ command: ["printf", "a\\377b"] })).json.stdout).toBe("a\ufffdb");
  });

  it.each([
    [{}, "command cannot be empty"],
    [{ command: [] }, "command cannot be empty"],
    [{ command: "ls" }, "invalid command: expected an array of strings"],
    [{ command: [1] }, "invalid command: expected an array of strings"],
    [{ command: [""] }, "invalid command: it is empty"],
    [{ command: ["a\0b"] }, "NUL"],
    [{ command: ["true"], timeout: "soon" }, 'Invalid timeout format: time: invalid duration "soon"'],
    [{ command: ["true"], timeout: "30" }, 'Invalid timeout format: time: missing unit in duration "30"'],
    [{ command: ["true"], timeout: "3d" }, 'Invalid timeout format: time: unknown unit "d" in duration "3d"'],
    [{ command: ["true"], timeout: "-1s" }, 'Invalid timeout format: "-1s" is no time at all'],
    [{ command: ["true"], timeout: 30 }, "invalid timeout: expected a string"],
    [{ command: ["true"], env: { A: 1 } }, "invalid env"],
    [{ command: ["true"], env: { "A=B": "" } }, "invalid env"],
    [{ command: ["true"], working_dir: "a\0" }, "Invalid working directory: invalid path"],
    [[], "invalid body"],
  ])("refuses %j", async (body, why) => {
    expect(error(await execute(body))).toEqual([400, expect.stringContaining(why), 400]);
  });

  it("takes JSON whatever it calls itself, and nothing else", async () => {
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect((await call(daemon, "POST", "/api/execute", '{"command":["echo","hi"],"timeout":"1m30s"}', form)).status).toBe(200);
    const answer = await ask(daemon, "/api/execute", { method: "POST", headers: { authorization: `Bearer ${TOKEN}` } }, "{");
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      400,
      { error: expect.stringContaining("invalid body"), code: 400 },
    ]);
  });

  it("has its own words for what the router refuses too", async () => {
    expect(error(await call(daemon, "GET", "/api/execute"))).toEqual([405, "/api/execute takes POST", 405]);
    expect((await call(daemon, "PUT", "/api/files")).headers.allow).toBe("POST, GET, HEAD");
  });
});

describe("POST /api/files with JSON", () => {
  it("writes a file, with its parents, and describes it", async () => {
    const { status, json } = await upload({ path: "a/b c/ü.txt", content: base64("hello\n"), mode: "0600" });
    const { mtimeMs } = statSync(inWorkspace("a/b c/ü.txt"));
    expect([status, json]).toEqual([
      200,
      { path: "a/b c/ü.txt", size: 6, mode: "-rw-------", modified: expect.stringMatching(/Z$/) },
    ]);
    expect(Math.trunc(Date.parse(json.modified))).toBe(Math.trunc(mtimeMs));
    expect(readFileSync(inWorkspace("a/b c/ü.txt"), "utf8")).toBe("hello\n");
    expect(statSync(inWorkspace("a/b c")).mode & 0o777).toBe(0o755);
  });

  it.each([
    ["0755", "-rwxr-xr-x"],
    ["644", "-rw-r--r--"],
    ["4755", "-rw-r--r--"],
    ["rw", "-rw-r--r--"],
    ["", "-rw-r--r--"],
  ])("takes the mode %j as %s", async (mode, shown) => {
    expect((await upload({ path: `mode-${mode}`, content: base64("x"), mode })).json.mode).toBe(shown);
  });

  it("takes the fields in any order, escapes and line ends in the content, and any size", async () => {
    const large = randomBytes(40_000_000);
    const text = base64(large);
    const { json } = await upload(`{ "path": "large" ,"unknown":{"a":["}",2]}, "content":"${text}" , "mode":"0640"}\n`);
    expect(json).toMatchObject({ size: large.length, mode: "-rw-r-----" });
    expect(
      createHash("sha256")
        .update(readFileSync(inWorkspace("large")))
        .digest("hex"),
    ).toBe(createHash("sha256").update(large).digest("hex"));
    const odd = Buffer.from([0xff, 0xff, 0xfe, 1]);
    const escaped = base64(odd).replaceAll("/", "\\/").replace(/^.{4}/, "$&\\r\\n");
    expect((await upload(`{"content":"${escaped}","mode":"0644","path":"odd"}`)).status).toBe(200);
    expect(readFileSync(inWorkspace("odd"))).toEqual(odd);
    const all = randomBytes(600_000);
    const allEscaped = base64(all).replace(/./g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
    expect((await upload(`{"path":"all","content":"${allEscaped}"}`)).status).toBe(200);
    expect(readFileSync(inWorkspace("all")).equals(all)).toBe(true);
  });

  it.each([
    [{ content: "eA==" }, "Missing 'path' field"],
    [{ path: "", content: "eA==" }, "Missing 'path' field"],
    [{ path: "bad" }, "Missing 'content' field"],
    [{ path: "bad", content: "" }, "Missing 'content' field"],
    [{ path: "bad", content: "eA=" }, "Invalid base64 content: illegal base64 data at input byte"],
    [{ path: "bad", content: "e A==" }, "Invalid base64 content: illegal base64 data at input byte 1"],
    [{ path: "bad", content: "eA==eA==" }, "Invalid base64 content: illegal base64 data at input byte 2"],
    [{ path: "bad", content: 5 }, "content must be"],
    [{ path: 5, content: "eA==" }, "path must be"],
    [{ path: "../bad", content: "eA==" }, "access denied: path '../bad' escapes workspace jail"],
    [{ path: "x/../../bad", content: "eA==" }, "escapes workspace jail"],
    [{ path: "bad\0", content: "eA==" }, "NUL"],
    [{ path: "/", content: "eA==" }, ""],
  ])("refuses %j and leaves nothing", async (body, why) => {
    expect(error(await upload(body))).toEqual([400, expect.stringContaining(why), 400]);
    expect(existsSync(inWorkspace("bad"))).toBe(false);
    expect(existsSync(join(workspace, "../bad"))).toBe(false);
  });

  it("leaves nothing of an upload that is cut anywhere", async () => {
    const body = JSON.stringify({ path: "cut/file", content: base64("some content"), mode: "0644" });
    for (let cut = 0; cut < body.length; cut++) {
      const answer = await upload(body.slice(0, cut));
      expect(error(answer), body.slice(0, cut)).toEqual([400, expect.any(String), 400]);
      if (cut % 10 !== 0) continue;
      const socket = await openSocket(daemon);
      const head = `POST /api/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\ncontent-length: 999\r\n\r\n`;
      socket.end(head + body.slice(0, cut));
    }
    await eventually("it is gone", () => !existsSync(inWorkspace("cut")));
  });
});

describe("POST /api/files with a form", () => {
  it("streams a file of any size", async () => {
    using other = temporaryDirectory();
    const content = randomBytes(50_000_000);
    writeFileSync(join(other.path, "local"), content);
    const { body } = await curl(
      daemon,
      "/api/files",
      "-F",
      "path=form/file",
      "-F",
      "mode=0600",
      "-F",
      `file=@${other.path}/local`,
    );
    expect(JSON.parse(body.toString())).toMatchObject({ path: "form/file", size: 50_000_000, mode: "-rw-------" });
    expect(readFileSync(inWorkspace("form/file")).equals(content)).toBe(true);
    const late = await curl(daemon, "/api/files", "-F", "file=abc", "-F", "path=form/late");
    expect([late.status, readFileSync(inWorkspace("form/late"), "utf8")]).toEqual([200, "abc"]);
    const empty = await curl(daemon, "/api/files", "-F", "path=form/empty", "-F", "file=");
    expect([empty.status, readFileSync(inWorkspace("form/empty"), "utf8")]).toEqual([200, ""]);
    const tooLate = await curl(daemon, "/api/files", "-F", `file=@${other.path}/local`, "-F", "path=form/too-late");
    expect([tooLate.status, existsSync(inWorkspace("form/too-late"))]).toEqual([400, false]);
  });

  it.each([
    [["-F", "file=abc"], "Missing 'path' field"],
    [["-F", "path=nothing"], "Failed to get file: "],
    [["-F", "path=../x", "-F", "file=abc"], "access denied: path '../x' escapes workspace jail"],
  ])("refuses %j", async (args, why) => {
    const { status, body } = await curl(daemon, "/api/files", ...args);
    expect([status, JSON.parse(body.toString())]).toEqual([400, { error: expect.stringContaining(why), code: 400 }]);
  });
});

describe("GET /api/files", () => {
  it("lists a directory by name", async () => {
    mkdirSync(inWorkspace("list/sub"), { recursive: true });
    chmodSync(inWorkspace("list/sub"), 0o1777);
    writeFileSync(inWorkspace("list/b"), "12345", { mode: 0o640 });
    symlinkSync("b", inWorkspace("list/a"));
    const { status, json } = await call(daemon, "GET", "/api/files?path=list");
    const modified = expect.stringMatching(/^\d{4}-.*Z$/);
    expect([status, json]).toEqual([
      200,
      {
        files: [
          { name: "a", size: 1, mode: "Lrwxrwxrwx", is_dir: false, modified },
          { name: "b", size: 5, mode: "-rw-r-----", is_dir: false, modified },
          { name: "sub", size: expect.any(Number), mode: "dtrwxrwxrwx", is_dir: true, modified },
        ],
      },
    ]);
    const names = async (path: string) =>
      (await call(daemon, "GET", `/api/files?path=${path}`)).json.files.map((each: { name: string }) => each.name);
    expect(await names("/list")).toEqual(["a", "b", "sub"]);
    expect(await names(".")).toEqual(readdirSync(workspace).toSorted());
    expect(await names("list/sub")).toEqual([]);
  });

  it.each([
    ["/api/files", 400, "Missing 'path' query parameter"],
    ["/api/files?path=", 400, "Missing 'path' query parameter"],
    ["/api/files?path=none", 404, "Directory not found"],
    ["/api/files?path=..", 400, "access denied: path '..' escapes workspace jail"],
    ["/api/files?path=%00", 400, "NUL"],
  ])("answers %s with %d", async (path, status, why) => {
    expect(error(await call(daemon, "GET", path))).toEqual([status, expect.stringContaining(why), status]);
  });

  it("streams a listing of many", async () => {
    mkdirSync(inWorkspace("many"), { recursive: true });
    for (let index = 0; index < 900; index++) writeFileSync(inWorkspace(`many/${String(index).padStart(240, "\x01")}`), "");
    const { json } = await call(daemon, "GET", "/api/files?path=many");
    expect(json.files).toHaveLength(900);
    expect(json.files.at(-1).name).toMatch(/899$/);
  });
});

describe("GET /api/files/{path}", () => {
  it("gives the bytes, and parts of them, as static files have it", async () => {
    mkdirSync(inWorkspace("get"), { recursive: true });
    writeFileSync(inWorkspace("get/a b.html"), "0123456789");
    const { status, headers, body } = await call(daemon, "GET", "/api/files/get/a%20b.html");
    expect([status, body]).toEqual([200, "0123456789"]);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-disposition": 'attachment; filename="a b.html"',
      "content-description": "File Transfer",
      "content-transfer-encoding": "binary",
      "accept-ranges": "bytes",
      "last-modified": expect.any(String),
    });
    const part = await call(daemon, "GET", "/api/files/get%2Fa%20b.html", undefined, { range: "bytes=2-4" });
    expect([part.status, part.body, part.headers["content-range"]]).toEqual([206, "234", "bytes 2-4/10"]);
    const since = { "if-modified-since": headers["last-modified"] ?? "" };
    expect((await call(daemon, "GET", "/api/files/get/a%20b.html", undefined, since)).status).toBe(304);
    const beyond = await call(daemon, "GET", "/api/files/get/a%20b.html", undefined, { range: "bytes=20-" });
    expect(error(beyond)).toEqual([416, expect.any(String), 416]);
    expect((await call(daemon, "HEAD", "/api/files/get/a%20b.html")).headers["content-length"]).toBe("10");
    // A library's own list is no wish.
    for (const [accepted, coding] of [
      ["gzip, deflate", undefined],
      ["gzip, identity;q=0.5", "gzip"],
    ]) {
      writeFileSync(inWorkspace("get/long"), "long ".repeat(1000));
      const { headers } = await call(daemon, "GET", "/api/files/get/long", undefined, { "accept-encoding": accepted ?? "" });
      expect(headers["content-encoding"], accepted).toBe(coding);
    }
    writeFileSync(inWorkspace("get/plain"), "x");
    expect((await call(daemon, "GET", "/api/files/get/plain")).headers["content-type"]).toBe("application/octet-stream");
  });

  it.each([
    ["/api/files/none", 404, "File not found"],
    ["/api/files/get", 400, "Path is a directory, not a file"],
    ["/api/files/", 400, "Path is a directory, not a file"],
    ["/api/files/..%2Fx", 400, "escapes workspace jail"],
    ["/api/files/%zz", 400, "invalid path"],
    ["/api/files/get/plain/below", 400, "not a directory"],
  ])("answers %s with %d", async (path, status, why) => {
    mkdirSync(inWorkspace("get"), { recursive: true });
    expect(error(await call(daemon, "GET", path))).toEqual([status, expect.stringContaining(why), status]);
  });
});

describe("the workspace", () => {
  it("is not left by links, and links into it work as commands made them", async () => {
    mkdirSync(inWorkspace("links/real"), { recursive: true });
    writeFileSync(inWorkspace("links/real/secret"), "inside");
    symlinkSync("/etc", inWorkspace("links/etc"));
    symlinkSync("../../../../../../../etc/passwd", inWorkspace("links/passwd"));
    symlinkSync("/etc/picod-test-none", inWorkspace("links/dangling"));
    symlinkSync(inWorkspace("links/real"), inWorkspace("links/absolute"));
    symlinkSync("loop", inWorkspace("links/loop"));
    for (const path of ["links/etc/passwd", "links/passwd", "links/dangling"]) {
      const jail = [400, `access denied: path '${path}' escapes workspace jail`, 400];
      expect(error(await call(daemon, "GET", `/api/files/${path}`))).toEqual(jail);
      expect(error(await upload({ path, content: base64("x") }))).toEqual(jail);
    }
    expect((await call(daemon, "GET", "/api/files?path=links/etc")).status).toBe(400);
    expect((await call(daemon, "GET", "/api/files/links/loop")).status).toBe(400);
    expect((await call(daemon, "GET", "/api/files/links/absolute/secret")).body).toBe("inside");
    expect((await upload({ path: "links/absolute/new", content: base64("x") })).json.path).toBe("links/real/new");
  });

  it.each([
    [["--workdir"], "the working directory"],
    [["--root"], "the root"],
  ])("is by default what %s says", async ([flag = ""]) => {
    using other = temporaryDirectory();
    await using elsewhere = await startDaemon({ args: [flag, other.path] });
    const { json } = await call(elsewhere, "POST", "/api/execute", { command: ["pwd"] });
    expect(json.stdout).toBe(`${realpathSync(other.path)}\n`);
  });

  it("belongs to the user that commands run as", async () => {
    using other = temporaryDirectory();
    const path = join(realpathSync(other.path), "theirs");
    await using elsewhere = await startDaemon({ args: ["--workspace", path, "--user", "nobody"] });
    const { json } = await call(elsewhere, "POST", "/api/files", { path: "a/b", content: base64("x") });
    expect(json.path).toBe("a/b");
    expect(statSync(join(path, "a/b")).uid).toBe(65534);
    const { json: answer } = await call(elsewhere, "POST", "/api/execute", { command: ["sh", "-c", "id -un; echo x > c; pwd"] });
    expect(answer).toMatchObject({ stdout: `nobody\n${path}\n`, exit_code: 0 });
  });
});
