import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const headers = { authorization: `Bearer ${TOKEN}` };

function makeTree(directory: string): string {
  const path = `${directory}/tree`;
  execFileSync(
    "bash",
    ["-ec", "mkdir -p tree/sub; echo a >tree/a; echo log >tree/sub/x.log; chmod 750 tree/sub; ln -s a tree/link"],
    {
      cwd: directory,
    },
  );
  return path;
}

const url = (daemon: Daemon, path: string, query = "") => `${daemon.url}/v1/archive${path}${query}`;

async function put(daemon: Daemon, path: string, query: string, body: Uint8Array<ArrayBuffer>, more = {}) {
  const answer = await fetch(url(daemon, path, query), { method: "PUT", headers: { ...headers, ...more }, body });
  return { status: answer.status, json: await answer.json() };
}

/** As GNU tar makes it. */
const tarOf = (directory: string, ...more: string[]) =>
  new Uint8Array(execFileSync("tar", ["-C", directory, "-c", ...more, "."], { maxBuffer: 64 * 1024 * 1024 }));

describe("an archive over plain HTTP", () => {
  it.each(["", "?gzip"])("is unpacked by tar%s", async (query) => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const tree = makeTree(directory.path);
    const out = `${directory.path}/out`;
    mkdirSync(out);
    const script = 'curl -fsS -H "Authorization: Bearer $TOKEN" "$URL" | tar -x -C "$OUT" $FLAG';
    const env = { ...process.env, TOKEN, URL: url(daemon, `/${tree}`, query), OUT: out, FLAG: query === "" ? "-p" : "-pz" };
    execFileSync("bash", ["-o", "pipefail", "-ec", script], { env });
    execFileSync("diff", ["-r", "--no-dereference", tree, out]);
    expect(statSync(`${out}/sub`).mode & 0o777).toBe(0o750);
    const head = await fetch(url(daemon, `/${tree}`, query), { method: "HEAD", headers });
    expect(head.status).toBe(200);
    const name = query === "" ? "tree.tar" : "tree.tar.gz";
    expect(head.headers.get("content-disposition")).toBe(`attachment; filename="${name}"`);
    expect(head.headers.get("content-type")).toBe(query === "" ? "application/x-tar" : "application/gzip");
  });

  it("leaves out what is excluded", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const answer = await fetch(url(daemon, `/${makeTree(directory.path)}`, "?exclude=*.log&exclude=link"), { headers });
    const listed = execFileSync("tar", ["-t"], { input: Buffer.from(await answer.arrayBuffer()), encoding: "utf8" });
    expect(listed.trim().split("\n")).toEqual(["./", "a", "sub/"]);
  });

  it("is stored by whoever has one, in parts or as a whole", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const tree = makeTree(directory.path);
    const archive = tarOf(tree, "-z");
    const target = `${directory.path}/new/place`;
    const sha256 = createHash("sha256").update(archive).digest();
    const digest = { "content-digest": `sha-256=:${sha256.toString("base64")}:` };
    const stored = await put(daemon, `/${target}`, "", archive, digest);
    expect(stored).toEqual({ status: 200, json: { path: target, entries: 5, bytes: 6, sha256: sha256.toString("hex") } });
    execFileSync("diff", ["-r", "--no-dereference", tree, target]);
    writeFileSync(`${target}/old`, "");
    await put(daemon, `/${target}`, "", archive);
    expect(existsSync(`${target}/old`)).toBe(true);
    await put(daemon, `/${target}`, "?atomic", archive);
    expect(existsSync(`${target}/old`)).toBe(false);
  });

  it.each([
    ["?atomic", {}, "garbage that is no archive".repeat(40), 400, "INVALID_ARGUMENT"],
    ["?atomic&max_entries=2", {}, undefined, 503, "RESOURCE_EXHAUSTED"],
    ["?atomic&max_bytes=x", {}, undefined, 400, "INVALID_ARGUMENT"],
    ["?atomic", { "content-digest": `sha-256=:${"A".repeat(43)}=:` }, undefined, 400, "INVALID_ARGUMENT"],
  ])("changes nothing when it is refused: %s %j", async (query, more, content, status, code) => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const tree = makeTree(directory.path);
    const target = `${directory.path}/target`;
    mkdirSync(target);
    writeFileSync(`${target}/old`, "old");
    const body = content === undefined ? tarOf(tree) : new Uint8Array(Buffer.from(content));
    const refused = await put(daemon, `/${target}`, query, body, more);
    expect(refused).toMatchObject({ status, json: { code, message: expect.any(String) } });
    expect(readdirSync(target)).toEqual(["old"]);
    expect(readdirSync(directory.path).sort()).toEqual(["target", "tree"]);
  });

  it("that is cut off leaves nothing", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const archive = tarOf(makeTree(directory.path));
    const socket = connect(daemon.port, "127.0.0.1");
    await once(socket, "connect");
    const head = `PUT /v1/archive/${directory.path}/target?atomic HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n`;
    socket.write(`${head}content-length: ${archive.length}\r\n\r\n`);
    socket.write(archive.subarray(0, 2048));
    await eventually("it has begun", () => readdirSync(directory.path).length === 2);
    socket.destroy();
    await eventually("nothing is left", () => readdirSync(directory.path).join() === "tree");
  });

  it("breaks the connection when a file shrinks meanwhile", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    const path = `${directory.path}/big`;
    writeFileSync(path, Buffer.alloc(64 * 1024 * 1024, "x"));
    const answer = await fetch(url(daemon, `/${path}`), { headers });
    truncateSync(path, 1);
    await expect(answer.arrayBuffer()).rejects.toThrow("terminated");
    expect(readFileSync(path, "utf8")).toBe("x");
  });

  it("is not found where there is nothing", async () => {
    await using daemon = await startDaemon();
    const answer = await fetch(url(daemon, "//no/such/directory"), { headers });
    expect([answer.status, await answer.json()]).toEqual([404, expect.objectContaining({ code: "NOT_FOUND" })]);
    expect((await fetch(url(daemon, "//etc"))).status).toBe(401);
  });
});
