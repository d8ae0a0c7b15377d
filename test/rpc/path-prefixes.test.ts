import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { type TemporaryDirectory, temporaryDirectory } from "../helpers/temporary-directory.js";
import { askAs } from "../helpers/with-token.js";
import { all, fileRequests, fileRpcs, messages, NEWS } from "./support/file-calls.js";

const SECRET = "not for everybody";

/** `in` and `also`, which a caller is confined to, beside `out`; and what could lead from one to the other. */
function furnish({ path }: TemporaryDirectory): void {
  for (const name of ["in/deep", "also", "out/directory"]) mkdirSync(`${path}/${name}`, { recursive: true });
  for (const name of ["in/file", "in/deep/file", "also/file"]) writeFileSync(`${path}/${name}`, "inside");
  writeFileSync(`${path}/out/secret`, SECRET);
  symlinkSync("deep/file", `${path}/in/link`);
  symlinkSync("../out", `${path}/in/relative`);
  symlinkSync(`${path}/out`, `${path}/in/absolute`);
  symlinkSync(`${path}/in/deep`, `${path}/in/back`);
  symlinkSync("in", `${path}/bent`);
}

/** Paths that mean something outside, and those that only go about it oddly. */
const OUTSIDE = [
  "out/secret",
  "in/../out/secret",
  "in/deep/../../out/secret",
  "in/relative/secret",
  "in/absolute/secret",
  "inside/../out/secret",
  "out",
];
const DENIED = [...OUTSIDE, "bent/file", "in/back/file", ".", "in/..", "out/new"];

function startConfined({ path }: TemporaryDirectory): Promise<Daemon> {
  const scopes = ["files:read", "files:write"];
  const callers = [
    { name: "confined", token: "confined", scopes, paths: [`${path}/in`, `${path}/also`] },
    { name: "alike", token: "alike", scopes, paths: [`${path}/in`, `${path}/also`] },
    { name: "otherwise", token: "otherwise", scopes, paths: [`${path}/also`] },
    { name: "bent", token: "bent", scopes, paths: [`${path}/bent`, `${path}/missing`] },
    { name: "free", token: "free", scopes },
  ];
  writeFileSync(`${path}/scopes.json`, JSON.stringify({ callers }), { mode: 0o600 });
  return startDaemon({ env: {}, args: ["--scopes-file", `${path}/scopes.json`] });
}

function traces({ path }: TemporaryDirectory): unknown {
  return [
    readdirSync(`${path}/out`, { recursive: true }).toSorted(),
    readdirSync(path).toSorted(),
    readFileSync(`${path}/out/secret`, "utf8"),
  ];
}

describe("a caller who is confined to paths", () => {
  it("gets out by no RPC", async () => {
    using base = temporaryDirectory();
    furnish(base);
    await using daemon = await startConfined(base);
    const before = traces(base);
    await using clients = connectTo(daemon.url, { token: "confined" });
    for (const [title, rpc] of Object.entries(fileRpcs(clients, `${base.path}/in`))) {
      for (const path of DENIED) {
        // Of what is inside by its text an address may be signed: opening it is another matter.
        if (title === "createSignedUrl" && path.startsWith("in/")) continue;
        const error = await rpc(`${base.path}/${path}`).then(
          (answer) =>
            expect.fail(
              `${title} of ${path}: ${JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`,
            ),
          (reason: unknown) => ConnectError.from(reason),
        );
        const isDenied = error.code === Code.PermissionDenied;
        // Some see before that a name with dots at its end is none for them.
        expect.soft(isDenied || path.endsWith("."), `${title} of ${path}: ${error.message}`).toBe(true);
      }
    }
    expect(traces(base)).toEqual(before);
  });

  it("gets out by no route and by nothing of E2B's", async () => {
    using base = temporaryDirectory();
    furnish(base);
    await using daemon = await startConfined(base);
    const before = traces(base);
    for (const [title, request] of Object.entries(fileRequests(daemon, "confined"))) {
      for (const path of OUTSIDE) {
        const { status, body } = await request(`${base.path}/${path}`);
        const isMissing = title.includes("Remove") && status === 200;
        expect.soft(status >= 400 || isMissing, `${title} of ${path}: ${status} ${body}`).toBe(true);
        expect.soft(body, `${title} of ${path}`).not.toContain(SECRET);
      }
    }
    expect(traces(base)).toEqual(before);
  });

  it("does all within, from one of its paths to another", async () => {
    using base = temporaryDirectory();
    furnish(base);
    await using daemon = await startConfined(base);
    await using clients = connectTo(daemon.url, { token: "confined" });
    const { filesystem } = clients;
    const at = (name: string) => `${base.path}/${name}`;
    const read = async (path: string) =>
      (await askAs(daemon, "confined", `/v1/files/${encodeURIComponent(path)}`, undefined, "GET")).body;
    await filesystem.makeDirectory({ path: at("in/a/b/c") });
    await filesystem.move({ source: at("in/file"), destination: at("also/new/moved") });
    await filesystem.copy({ source: at("in/deep"), destination: at("in/a/deep") });
    expect(await read(at("also/new/moved"))).toBe("inside");
    expect([await read(at("in/link")), await read(at("in/./deep/../link")), await read(at("/in//deep/file"))]).toEqual([
      "inside",
      "inside",
      "inside",
    ]);
    expect((await askAs(daemon, "confined", `/v1/files/${encodeURIComponent(at("in/p/q"))}`, NEWS, "PUT")).status).toBe(204);
    expect((await askAs(daemon, "confined", `/files?path=${at("in/e2b")}`, undefined, "GET")).status).toBe(404);
    await filesystem.remove({ path: at("in/a"), recursive: true });
    const listed = (await all(filesystem.listDirectory({ path: at("in") }))) as { entries: { name: string }[] }[];
    expect(listed.flatMap(({ entries }) => entries.map(({ name }) => name))).toContain("absolute");
    const { url } = await filesystem.createSignedUrl({ path: at("in/p/q") });
    expect(await (await fetch(`${daemon.url}${url}`)).text()).toBe(NEWS);
    // A hard link is the file.
    linkSync(at("out/secret"), at("in/hard"));
    expect(await read(at("in/hard"))).toBe(SECRET);
  });

  it("finds nothing by a path that is a link, or that is not there", async () => {
    using base = temporaryDirectory();
    furnish(base);
    await using daemon = await startConfined(base);
    await using clients = connectTo(daemon.url, { token: "bent" });
    const codeOf = async (path: string) =>
      ConnectError.from(await clients.filesystem.stat({ path }).catch((error: unknown) => error)).code;
    expect(await codeOf(`${base.path}/bent/file`)).toBe(Code.FailedPrecondition);
    expect(await codeOf(`${base.path}/in/file`)).toBe(Code.PermissionDenied);
    expect(await codeOf(`${base.path}/missing`)).toBe(Code.NotFound);
    expect(await codeOf(`${base.path}/missing/../in/file`)).toBe(Code.NotFound);
    // It is looked up anew each time: what it leads to now counts.
    renameSync(`${base.path}/out`, `${base.path}/missing`);
    expect(await codeOf(`${base.path}/missing/secret`)).not.toBe(Code.NotFound);
  });

  it("goes on with uploads and watches of those alone who are confined alike", async () => {
    using base = temporaryDirectory();
    furnish(base);
    await using daemon = await startConfined(base);
    await using confined = connectTo(daemon.url, { token: "confined" });
    const metadata = { path: `${base.path}/also/upload`, uploadId: "up", offset: 0n };
    const chunk = { request: { case: "chunk" as const, value: new TextEncoder().encode(NEWS) } };
    await confined.filesystem.writeFile(messages({ request: { case: "metadata" as const, value: metadata } }, chunk));
    const commit = (clients: Clients) => clients.filesystem.commitUpload({ uploadId: "up", size: BigInt(NEWS.length) });
    for (const token of ["otherwise", "free"]) {
      await using other = connectTo(daemon.url, { token });
      expect((await other.filesystem.listUploads({})).uploads).toEqual([]);
      await expect(commit(other)).rejects.toMatchObject({ code: Code.NotFound });
      await expect(other.filesystem.abortUpload({ uploadId: "up" })).rejects.toMatchObject({ code: Code.NotFound });
    }
    const { cursor } = await confined.filesystem.getChanges({ path: `${base.path}/also` });
    await using otherwise = connectTo(daemon.url, { token: "otherwise" });
    await expect(otherwise.filesystem.getChanges({ path: `${base.path}/also`, cursor })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
    await using alike = connectTo(daemon.url, { token: "alike" });
    await expect(alike.filesystem.getChanges({ path: `${base.path}/also`, cursor })).resolves.toMatchObject({
      historyLost: false,
    });
    await expect(commit(alike)).resolves.toMatchObject({ entry: { path: `${base.path}/also/upload` } });
  });
});
