import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "./support/http1.js";

describe("a signed URL", () => {
  it("fetches one file without a token, with curl and fetch", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const path = `${directory.path}/ä b%20#?.txt`;
    writeFileSync(path, "content");
    const before = Date.now();
    const { url, expireTime } = await clients.filesystem.createSignedUrl({ path });
    expect(Number(expireTime?.seconds) * 1000 - before).toBeGreaterThan(299_000);
    expect(execFileSync("curl", ["-sS", "--fail", daemon.url + url], { encoding: "utf8" })).toBe("content");
    const answer = await fetch(`${daemon.url}${url}&download=x.txt`);
    expect([await answer.text(), answer.headers.get("content-disposition")]).toEqual(["content", 'attachment; filename="x.txt"']);
    await expect(ask(daemon, url, { method: "HEAD" })).resolves.toMatchObject({
      status: 200,
      headers: { "content-length": "7" },
    });
    await daemon.waitForLog(({ procedure }) => procedure === "GET /v1/files/{path...}");
    expect(JSON.stringify(daemon.logs)).not.toContain("signature=");
  });

  it("stores one file, as the user that it names", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    execFileSync("chmod", ["777", directory.path]);
    const path = `${directory.path}/file`;
    const { url } = await clients.filesystem.createSignedUrl({ path, method: "PUT", user: "nobody" });
    await expect(ask(daemon, url, { method: "PUT" }, "new")).resolves.toMatchObject({ status: 204 });
    expect(readFileSync(path, "utf8")).toBe("new");
    await expect(clients.filesystem.stat({ path })).resolves.toMatchObject({ entry: { owner: "nobody" } });
    await expect(ask(daemon, url.replace("user=nobody", "user=root"), { method: "PUT" }, "x")).resolves.toMatchObject({
      status: 401,
    });
    await expect(ask(daemon, `${url}&user=root`, { method: "PUT" }, "again")).resolves.toMatchObject({ status: 204 });
    await expect(clients.filesystem.stat({ path })).resolves.toMatchObject({ entry: { owner: "nobody" } });
  });

  it("opens nothing else", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "content");
    const { url } = await clients.filesystem.createSignedUrl({ path: `${directory.path}/file` });
    const [path = "", query = ""] = url.split("?");
    for (const [method, target] of [
      ["PUT", url],
      ["DELETE", url],
      ["POST", url],
      ["OPTIONS", url],
      ["GET", `${path}2?${query}`],
      ["GET", `${path}%2F..?${query}`],
      ["GET", `/v1/files/%ff%?${query}`],
      ["GET", `/v1/processes?${query}`],
      ["GET", `/metrics?${query}`],
      ["GET", path],
      ["GET", `${path}?${query.slice(0, -1)}`],
      ["GET", `${path}?${query.replace(/expires=\d+/, "expires=9999999999")}`],
    ] as const) {
      const answer = await ask(daemon, target, { method });
      expect.soft(answer.status, `${method} ${target}`).toBe(401);
    }
    // The same path in another spelling.
    await expect(ask(daemon, `${path.replaceAll("/tmp", "/./tmp")}?${query}`)).resolves.toMatchObject({ status: 200 });
  });

  it("works once when it is for single use, and until it expires", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "content");
    const { url } = await clients.filesystem.createSignedUrl({ path, singleUse: true });
    const answers = await Promise.all([1, 2, 3].map(() => ask(daemon, url)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
    const short = await clients.filesystem.createSignedUrl({ path, lifetime: { seconds: 0n, nanos: 1_000_000 } });
    await eventually("it has expired", async () => (await ask(daemon, short.url)).status === 401);
  });

  it("is below the root, where there is one", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "below");
    await using daemon = await startDaemon({ args: ["--root", directory.path] });
    await using clients = connectTo(daemon.url);
    const { url } = await clients.filesystem.createSignedUrl({ path: "/file" });
    expect(url).toMatch(/^\/v1\/files\/file\?expires=/);
    await expect(ask(daemon, url)).resolves.toMatchObject({ status: 200, body: "below" });
  });

  it("is made for GET and PUT, and for a while", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    for (const [request, message] of [
      [{ path: "/x", method: "DELETE" }, 'invalid method: "DELETE" is neither GET nor PUT'],
      [{ path: "/x", lifetime: { seconds: 0n } }, "invalid lifetime"],
      [{ path: "/x", lifetime: { seconds: -1n } }, "invalid lifetime"],
      [{ path: "/x", lifetime: { seconds: 604_801n } }, "invalid lifetime"],
      [{ path: "" }, "invalid path"],
      [{ path: "/x", user: "nobody-of-that-name" }, "no such user"],
    ] as const) {
      await expect(clients.filesystem.createSignedUrl(request)).rejects.toThrow(message);
    }
    const { url } = await clients.filesystem.createSignedUrl({ path: "/x", lifetime: { seconds: 604_800n } });
    await expect(ask(daemon, url)).resolves.toMatchObject({ status: 404 });
  });
});
