import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, type PlainAnswer } from "./support/http1.js";

const NOBODY = 65_534;
const BOUNDARY = "----limit";

/** A daemon in debug mode: nobody is asked for a token. */
async function withEnvd(test: (daemon: Daemon, directory: string) => Promise<void>, args: readonly string[] = []): Promise<void> {
  using directory = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--insecure-no-auth", "--envd-user", "nobody", ...args], env: {} });
  await test(daemon, directory.path);
}

const url = (path: string, more = "") => `/files?path=${encodeURIComponent(path)}${more}`;
const get = (daemon: Daemon, path: string, headers: Record<string, string> = {}) => ask(daemon, path, { headers });

function post(
  daemon: Daemon,
  path: string,
  body: string | Uint8Array,
  headers: Record<string, string | string[]> = {},
): Promise<PlainAnswer> {
  const type = { "content-type": "application/octet-stream", "content-length": String(Buffer.byteLength(body)) };
  return ask(daemon, path, { method: "POST", headers: { ...type, ...headers } }, body);
}

function form(...parts: readonly [disposition: string, content: string][]): [string, Record<string, string>] {
  const text = parts.map(
    ([disposition, content]) => `--${BOUNDARY}\r\nContent-Disposition: ${disposition}\r\n\r\n${content}\r\n`,
  );
  return [`${text.join("")}--${BOUNDARY}--\r\n`, { "content-type": `multipart/form-data; boundary=${BOUNDARY}` }];
}

const error = (code: number, message: unknown) => JSON.stringify({ code, message });

describe("POST /files", () => {
  it("writes a raw body, makes parents, and gives both to the user", () =>
    withEnvd(async (daemon, directory) => {
      const path = `${directory}/a/b/file`;
      const { status, body } = await post(daemon, url(path), "content");
      expect([status, JSON.parse(body)]).toEqual([200, [{ path, name: "file", type: "file" }]]);
      expect(readFileSync(path, "utf8")).toBe("content");
      expect(statSync(path)).toMatchObject({ uid: NOBODY, gid: NOBODY, mode: 0o100644 });
      expect(statSync(`${directory}/a`)).toMatchObject({ uid: NOBODY, mode: 0o40755 });
      await post(daemon, url(path, "&username=root"), "x");
      expect(statSync(path)).toMatchObject({ uid: 0, size: 1 });
    }));

  it("keeps the mode of a file that exists", () =>
    withEnvd(async (daemon, directory) => {
      const path = `${directory}/file`;
      writeFileSync(path, "long before", { mode: 0o600 });
      expect(await post(daemon, url(path), "")).toMatchObject({ status: 200 });
      expect(statSync(path)).toMatchObject({ uid: NOBODY, size: 0, mode: 0o100600 });
    }));

  it("takes every part that is named file, by its whole file name", () =>
    withEnvd(async (daemon, directory) => {
      const [body, headers] = form(
        ['form-data; name="other"; filename="ignored"', "x"],
        [`form-data; name="file"; filename="${directory}/ä/1"`, "one"],
        [`form-data; filename="${directory}/2%22"; name=file`, "two\r\n--"],
        [`form-data; name="file"; filename=${directory}/unquoted`, "x"],
        [`form-data; name="file"; filename*=utf-8''${encodeURIComponent(`${directory}/ö`)}`, "four"],
      );
      const answer = await post(daemon, "/files", body, headers);
      expect(JSON.parse(answer.body)).toMatchObject([
        { path: `${directory}/ä/1`, name: "1" },
        { path: `${directory}/2%22` },
        { path: `${directory}/ö` },
      ]);
      expect(readFileSync(`${directory}/2%22`, "utf8")).toBe("two\r\n--");
      const nameless = form(['form-data; name="file"', "signed"]);
      expect(await post(daemon, url(`${directory}/n`), ...nameless)).toMatchObject({ status: 200 });
      expect(await post(daemon, "/files", ...nameless)).toMatchObject({ status: 400 });
      expect(await post(daemon, "/files", ...form())).toMatchObject({ status: 200, body: "[]" });
      const twice = form(
        [`form-data; name="file"; filename="${directory}/t"`, "1"],
        [`form-data; name="file"; filename="${directory}/t"`, "2"],
      );
      expect(await post(daemon, "/files", ...twice)).toMatchObject({ status: 400 });
      expect(readFileSync(`${directory}/t`, "utf8")).toBe("1");
    }));

  it("refuses what it cannot read", () =>
    withEnvd(async (daemon, directory) => {
      const path = url(`${directory}/file`);
      const status = async (...request: Parameters<typeof post>) => (await post(...request)).status;
      expect(await status(daemon, "/files", "x")).toBe(400);
      expect(await status(daemon, path, "x", { "content-type": "text/plain" })).toBe(400);
      expect(await status(daemon, url(directory), "x")).toBe(400);
      expect(await status(daemon, url(`${directory}/made/`), "x")).toBe(400);
      expect(statSync(`${directory}/made`).isDirectory()).toBe(true);
      expect(await status(daemon, url("~root/x"), "x")).toBe(400);
      expect(await status(daemon, path, "x", { "content-encoding": "br" })).toBe(400);
      expect(await status(daemon, path, "no gzip", { "content-encoding": "gzip" })).toBe(400);
      expect(existsSync(`${directory}/file`)).toBe(false);
      writeFileSync(`${directory}/file`, "");
      expect(await status(daemon, url(`${directory}/file/below`), "x")).toBe(500);
      expect(await status(daemon, path, "cut", { "content-type": "multipart/form-data; boundary=b" })).toBe(500);
      expect(await status(daemon, path, "", { "content-type": "multipart/form-data" })).toBe(500);
      expect(await status(daemon, path, "", { "content-type": "multipart/related; boundary=b" })).toBe(500);
      expect(await status(daemon, url(`${directory}/x`, "&username=nobody-at-all"), "x")).toBe(401);
      expect(await status(daemon, url(`${directory}/x`, "&username="), "x")).toBe(401);
    }));

  it("decodes gzip before it looks for parts", () =>
    withEnvd(async (daemon, directory) => {
      const [body, headers] = form(['form-data; name="file"; filename="ignored"', "content"]);
      await post(daemon, url(`${directory}/1`), gzipSync(body), { ...headers, "content-encoding": "gzip" });
      await post(daemon, url(`${directory}/2`), "content", { "content-encoding": "identity" });
      expect([1, 2].map((name) => readFileSync(`${directory}/${name}`, "utf8"))).toEqual(["content", "content"]);
    }));

  it("keeps metadata, and replaces all of it", () =>
    withEnvd(async (daemon, directory) => {
      const path = url(`${directory}/file`);
      const metadataOf = async (headers: Record<string, string>) =>
        JSON.parse((await post(daemon, path, "x", headers)).body)[0].metadata;
      expect(await metadataOf({ "X-Metadata-Author": "me", "x-metadata-empty": "" })).toEqual({ author: "me", empty: "" });
      expect(await metadataOf({ "x-metadata-other": "1" })).toEqual({ other: "1" });
      expect(await metadataOf({})).toBeUndefined();
      for (const [key, value] of [
        ["k".repeat(247), "v"],
        ["k", "v".repeat(4090)],
        ["k", "ä"],
      ] as const) {
        expect(await post(daemon, path, "x", { [`x-metadata-${key}`]: value }), key).toMatchObject({ status: 400 });
      }
    }));
});

describe("GET /files", () => {
  it("says what is wrong in the words of the contract", () =>
    withEnvd(async (daemon, directory) => {
      const missing = `${directory}/none`;
      expect(await get(daemon, url(missing))).toMatchObject({
        status: 404,
        body: error(404, `path '${missing}' does not exist`),
      });
      expect(await get(daemon, url(directory))).toMatchObject({
        status: 400,
        body: error(400, `path '${directory}' is a directory`),
      });
      expect(await get(daemon, url("/", "&username=none"))).toMatchObject({
        status: 401,
        body: error(401, "error looking up user 'none': user: unknown user none"),
      });
      expect(await get(daemon, url(missing, "&signature_expiration=x"))).toMatchObject({
        status: 400,
        headers: { "content-type": expect.stringContaining("text/plain") },
      });
      expect(await get(daemon, url(missing, "&path=b"))).toMatchObject({ status: 400 });
      expect(await get(daemon, "/files/")).toMatchObject({ status: 404 });
    }));

  it("sends ranges, conditions and codings", () =>
    withEnvd(async (daemon, directory) => {
      const content = "0123456789".repeat(1000);
      writeFileSync(`${directory}/ü.txt`, content);
      const path = url(`${directory}/ü.txt`);
      const whole = await get(daemon, path, { "accept-encoding": "gzip, deflate" });
      expect(whole).toMatchObject({ status: 200, body: content, headers: { vary: "accept-encoding" } });
      expect(whole.headers["content-disposition"]).toMatch(/^inline; .*filename\*=UTF-8''%C3%BC\.txt/);
      expect(await get(daemon, path, { range: "bytes=2-4" })).toMatchObject({ status: 206, body: "234" });
      expect(await get(daemon, path, { range: "bytes=20000-" })).toMatchObject({ status: 416 });
      expect(await get(daemon, path, { range: "lines=1-2" })).toMatchObject({ status: 416 });
      expect(await get(daemon, path, { range: "bytes=1-2", "accept-encoding": "identity;q=0, gzip" })).toMatchObject({
        status: 406,
      });
      expect(await get(daemon, path, { "if-modified-since": whole.headers["last-modified"] ?? "" })).toMatchObject({
        status: 304,
      });
      expect(await get(daemon, path, { "accept-encoding": "br;q=1, *;q=0" })).toMatchObject({ status: 406 });
      for (const accept of ["gzip", "gzip;q=1, *;q=0"]) {
        const answer = await fetch(`${daemon.url}${path}`, { headers: { "accept-encoding": accept } });
        expect([answer.headers.get("content-encoding"), await answer.text()]).toEqual(["gzip", content]);
      }
      writeFileSync(`${directory}/empty`, "");
      expect(await get(daemon, url(`${directory}/empty`), { range: "bytes=0-1" })).toMatchObject({
        status: 200,
        headers: { "content-length": "0" },
      });
      expect((await get(daemon, url("/proc/version"))).body).toContain("Linux");
      expect(gunzipSync(gzipSync("x")).toString()).toBe("x");
    }));
});

describe("POST /files/compose", () => {
  it("makes one file of several, which go", () =>
    withEnvd(async (daemon, directory) => {
      for (const name of ["1", "2"]) writeFileSync(`${directory}/${name}`, name.repeat(3));
      const compose = (source_paths: unknown, destination: unknown) =>
        post(daemon, "/files/compose", JSON.stringify({ source_paths, destination }), { "content-type": "text/plain" });
      const [one, two, to] = ["1", "2", "to"].map((name) => `${directory}/${name}`);
      expect((await compose([one, `${directory}/none`], to)).status).toBe(404);
      expect((await compose([one, one, two], one)).status).toBe(400);
      expect((await compose([], to)).status).toBe(400);
      expect((await compose([directory], to)).status).toBe(400);
      expect((await compose([one], directory)).status).toBe(500);
      expect(await compose([one, two, one], to)).toMatchObject({
        status: 200,
        body: JSON.stringify({ path: to, name: "to", type: "file" }),
      });
      expect(readFileSync(`${directory}/to`, "utf8")).toBe("111222111");
      expect(statSync(`${directory}/to`)).toMatchObject({ uid: NOBODY });
      expect((await get(daemon, url(one ?? ""))).status).toBe(404);
    }));
});

describe("the rest of envd's plain HTTP", () => {
  it("answers other origins, and the question before", () =>
    withEnvd(async (daemon) => {
      const origin = "https://example.com";
      const asked = { origin, "access-control-request-method": "POST", "access-control-request-headers": "x-access-token" };
      expect(await ask(daemon, "/filesystem.Filesystem/Stat", { method: "OPTIONS", headers: asked })).toMatchObject({
        status: 204,
        headers: {
          "access-control-allow-origin": "*",
          "access-control-allow-methods": "POST",
          "access-control-allow-headers": "x-access-token",
          "access-control-max-age": "7200",
        },
      });
      expect(await get(daemon, "/envs", { origin })).toMatchObject({
        status: 200,
        headers: { "access-control-allow-origin": "*", vary: "Origin", "cache-control": "no-store" },
      });
      expect((await get(daemon, "/v1/processes", { origin })).headers["access-control-allow-origin"]).toBeUndefined();
    }));

  it("tells the machine's metrics to whoever prefers JSON", () =>
    withEnvd(async (daemon) => {
      expect((await get(daemon, "/metrics")).body).toContain("picod_");
      const metrics = JSON.parse((await get(daemon, "/metrics", { accept: "application/json" })).body);
      expect(metrics.mem_used).toBeGreaterThan(0);
      expect(metrics.mem_total).toBeGreaterThan(metrics.mem_used);
      expect(metrics.disk_total).toBeGreaterThan(metrics.disk_used);
      expect(Object.keys(metrics)).toEqual(
        expect.arrayContaining(["ts", "cpu_count", "cpu_used_pct", "mem_cache", "mem_total_mib", "mem_used_mib"]),
      );
    }));

  it("is not there with --no-envd", () =>
    withEnvd(
      async (daemon, directory) => {
        expect((await get(daemon, url(directory))).status).toBe(404);
        expect((await post(daemon, "/filesystem.Filesystem/Stat", "{}")).status).toBe(404);
        expect((await get(daemon, "/metrics", { accept: "application/json" })).body).toContain("picod_");
      },
      ["--no-envd"],
    ));
});
