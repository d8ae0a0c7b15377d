import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { curl } from "./support/curl.js";
import { call } from "./support/http-api.js";

/** A daemon whose paths begin in a directory of its own, with `setup` run there. */
async function startIn(setup: string, flag: "--workdir" | "--root" = "--workdir") {
  const directory = temporaryDirectory();
  execFileSync("bash", ["-ec", setup], { cwd: directory.path });
  const daemon = await startDaemon({ args: [flag, directory.path] });
  return {
    daemon,
    path: directory.path,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}

describe("GET of a directory", () => {
  it("lists it", async () => {
    const setup = `
      mkdir dir dir/sub; printf content > dir/b; touch dir/.hidden dir/B dir/ä dir/$'\\xff' dir/.picod-0123456789abcdef.tmp
      ln -s b dir/link; ln -s sub dir/sublink; ln -s none dir/broken; ln -s loop dir/loop; mkfifo dir/fifo
      chmod 4750 dir/b; chmod 700 dir/sub; touch -d 2026-01-02T03:04:05.9Z dir/b`;
    await using where = await startIn(setup);
    const { status, json, body, headers } = await call(where.daemon, "GET", "/v1/files/dir");
    expect([status, headers["content-length"]]).toEqual([200, String(Buffer.byteLength(body))]);
    expect(body.endsWith("]}\n")).toBe(true);
    expect(json.path).toBe("/dir");
    const names = json.entries.map(({ name }: { name: string }) => name);
    expect(names).toEqual([".hidden", "B", "b", "fifo", "link", "sub", "sublink", "ä", "\uefff"]);
    const entry = (name: string) => json.entries.find((found: { name: string }) => found.name === name);
    const b = { name: "b", size: 7, type: "file", modified_at: "2026-01-02T03:04:05Z", mode: "0750" };
    expect(entry("b")).toEqual(b);
    expect(entry("link")).toEqual({ ...b, name: "link" });
    expect(entry("sublink")).toMatchObject({ type: "directory", mode: "0700" });
    expect(entry("fifo")).toMatchObject({ type: "file" });
    // What was listed can be asked for.
    await expect(call(where.daemon, "GET", `/v1/files/dir/${encodeURIComponent("\uefff")}`)).resolves.toMatchObject({
      status: 200,
    });
    const head = await call(where.daemon, "HEAD", "/v1/files/dir");
    expect([head.status, head.headers["content-length"], head.body]).toEqual([200, headers["content-length"], ""]);
  });

  it.each([
    ["", "/"],
    ["/.", "/."],
    ["/", "/"],
    ["/%2E", "/."],
    ["/./", "/./"],
    ["/dir/", "/dir/"],
    ["/dir%2F", "/dir/"],
  ])("answers /v1/files%s itself, without a redirect", async (url, path) => {
    await using where = await startIn("mkdir dir; touch dir/x");
    const { status, body } = await curl(where.daemon, `/v1/files${url}`, "--path-as-is");
    expect([status, JSON.parse(body.toString())]).toMatchObject([200, { path }]);
    expect(JSON.parse(body.toString()).entries.map(({ name }: { name: string }) => name)).toEqual([
      path.startsWith("/dir") ? "x" : "dir",
    ]);
  });

  it("lists an empty one, the root, and the root by its own path", async () => {
    await using where = await startIn("mkdir empty", "--root");
    await expect(call(where.daemon, "GET", "/v1/files/empty")).resolves.toMatchObject({ json: { path: "/empty", entries: [] } });
    for (const url of ["/v1/files/", "/v1/files/%2F", `/v1/files/${encodeURIComponent(where.path)}`]) {
      expect((await call(where.daemon, "GET", url)).json.entries).toMatchObject([{ name: "empty" }]);
    }
  });

  it("shows nothing that an upload is still making", async () => {
    await using where = await startIn("mkdir dir");
    const body = new ReadableStream({
      async pull(controller) {
        controller.enqueue(Buffer.from("some of it"));
        const { json } = await call(where.daemon, "GET", "/v1/files/dir");
        expect(json.entries).toEqual([]);
        controller.close();
      },
    });
    const headers = { authorization: "Bearer test-token-4f1d2c" };
    const request = { method: "PUT", body, duplex: "half", headers } as RequestInit;
    expect((await fetch(`${where.daemon.url}/v1/files/dir/file`, request)).status).toBe(204);
    expect(readdirSync(`${where.path}/dir`)).toEqual(["file"]);
  });

  it("streams a large one", async () => {
    await using where = await startIn(`mkdir large; cd large; seq -f '${"x".repeat(240)}%.0f' 1 4000 | xargs touch`);
    const { headers, body } = await curl(where.daemon, "/v1/files/large");
    expect(headers["transfer-encoding"]).toBe("chunked");
    expect(JSON.parse(body.toString()).entries).toHaveLength(4_000);
    expect((await curl(where.daemon, "/v1/files/large", "-I")).status).toBe(200);
  });

  it("refuses whoever may not read it", async () => {
    await using where = await startIn("mkdir -m 700 closed");
    await expect(call(where.daemon, "GET", "/v1/files/closed?user=nobody")).resolves.toMatchObject({
      status: 403,
      json: { code: "PERMISSION_DENIED" },
    });
  });
});

describe("DELETE", () => {
  it("removes files, empty directories, and links without their targets", async () => {
    await using where = await startIn(
      "mkdir dir empty; touch file dir/x; ln -s file link; ln -s dir dirlink; ln -s none broken; ln -s loop loop; mkfifo fifo",
    );
    for (const name of ["link", "dirlink/", "broken", "loop", "fifo", "file", "empty"]) {
      await expect(call(where.daemon, "DELETE", `/v1/files/${name}`), name).resolves.toMatchObject({ status: 204, body: "" });
    }
    expect(readdirSync(where.path)).toEqual(["dir"]);
  });

  it("removes a directory with all that is in it only when told to", async () => {
    await using where = await startIn("mkdir -p dir/sub; touch dir/sub/x; ln -s /etc dir/sub/etc");
    for (const query of ["", "?recursive=false", "?recursive=0", "?recursive", "?recursive="]) {
      const answer = await call(where.daemon, "DELETE", `/v1/files/dir${query}`);
      expect.soft(answer, query).toMatchObject({ status: 409, json: { code: "CONFLICT" } });
    }
    await expect(call(where.daemon, "DELETE", "/v1/files/dir?recursive=1x")).resolves.toMatchObject({ status: 400 });
    await expect(call(where.daemon, "DELETE", "/v1/files/dir?recursive=t")).resolves.toMatchObject({ status: 204 });
    expect([readdirSync(where.path), existsSync("/etc/passwd")]).toEqual([[], true]);
  });

  it.each([
    ["what is not there", "none?recursive=1x", 404, "NOT_FOUND"],
    ["what is not there, with all in it", "none?recursive=true", 404, "NOT_FOUND"],
    ["below a file", "file/x", 400, "INVALID_ARGUMENT"],
    ["another's file", "file?user=nobody", 403, "PERMISSION_DENIED"],
    ["where paths begin", "", 409, "CONFLICT"],
    ["the root", "/?recursive=true", 409, "CONFLICT"],
  ])("refuses %s", async (_title, url, status, code) => {
    await using where = await startIn("touch file");
    await expect(call(where.daemon, "DELETE", `/v1/files/${url}`)).resolves.toMatchObject({ status, json: { code } });
    expect(readdirSync(where.path)).toEqual(["file"]);
  });

  it.each(["--root", "--workdir"] as const)("clears where paths begin, which stays (%s)", async (flag) => {
    await using where = await startIn("mkdir -p a/b .c; touch a/b/x .hidden; ln -s /etc link", flag);
    await expect(call(where.daemon, "DELETE", "/v1/files/")).resolves.toMatchObject({ status: 409 });
    await expect(call(where.daemon, "DELETE", "/v1/files/.?recursive=true")).resolves.toMatchObject({ status: 204 });
    expect([lstatSync(where.path).isDirectory(), readdirSync(where.path)]).toEqual([true, []]);
  });

  it("looks at conditions", async () => {
    await using where = await startIn("touch file");
    const { etag = "" } = (await call(where.daemon, "HEAD", "/v1/files/file")).headers;
    writeFileSync(`${where.path}/file`, "changed");
    const removeIf = (tag: string) => call(where.daemon, "DELETE", "/v1/files/file", undefined, { "if-match": tag });
    await expect(removeIf(etag)).resolves.toMatchObject({ status: 412, json: { code: "FAILED_PRECONDITION" } });
    expect(readFileSync(`${where.path}/file`, "utf8")).toBe("changed");
    const now = (await call(where.daemon, "HEAD", "/v1/files/file")).headers.etag ?? "";
    await expect(removeIf(now)).resolves.toMatchObject({ status: 204 });
    mkdirSync(`${where.path}/file`);
  });
});
