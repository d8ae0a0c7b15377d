import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { type EntryInfo, FileType } from "../../src/gen/picod/v1/filesystem_pb.js";
import { type Clients, connectTo, PROTOCOLS } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

async function failure(call: Promise<unknown>): Promise<{ code: string; reason: string; message: string; path: string }> {
  const error = await call.then(
    () => expect.fail("no error"),
    (reason: unknown) => ConnectError.from(reason),
  );
  const [info] = error.findDetails(ErrorInfoSchema);
  return {
    code: Code[error.code] ?? "",
    reason: info?.reason ?? "",
    message: error.rawMessage,
    path: info?.metadata.path ?? "",
  };
}

async function list({ filesystem }: Clients, path: string, more: object = {}): Promise<EntryInfo[]> {
  const entries: EntryInfo[] = [];
  for await (const message of filesystem.listDirectory({ path, ...more })) entries.push(...message.entries);
  return entries;
}

const content = (text: string) => ({ request: { case: "chunk" as const, value: Buffer.from(text) } });

async function* upload(path: string, text: string) {
  yield { request: { case: "metadata" as const, value: { path } } };
  yield content(text);
}

describe.each(PROTOCOLS)("directories over %s", (protocol) => {
  it("are made, listed, changed and removed", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    const path = `${directory.path}/a/b`;
    expect(await filesystem.makeDirectory({ path, mode: 0o700 })).toMatchObject({ created: true, entry: { path, mode: 0o700 } });
    expect(await filesystem.makeDirectory({ path })).toMatchObject({ created: false });
    expect(await failure(filesystem.makeDirectory({ path, mustNotExist: true }))).toMatchObject({
      code: "AlreadyExists",
      reason: "ALREADY_EXISTS",
      path,
    });
    writeFileSync(`${path}/file`, "");
    symlinkSync("file", `${path}/link`);
    expect((await list(clients, directory.path)).map((entry) => entry.path)).toEqual([`${directory.path}/a`]);
    const entries = await list(clients, directory.path, { depth: 0 });
    expect(entries.map((entry) => [entry.path.slice(directory.path.length), entry.type, entry.symlinkTarget])).toEqual([
      ["/a", FileType.DIRECTORY, undefined],
      ["/a/b", FileType.DIRECTORY, undefined],
      ["/a/b/file", FileType.FILE, undefined],
      ["/a/b/link", FileType.SYMLINK, "file"],
    ]);
    const { entry } = await filesystem.setAttributes({
      path: `${path}/file`,
      mode: 0o640,
      owner: "nobody",
      group: "nogroup",
      modifiedTime: { seconds: -1n, nanos: 999_999_999 },
      setXattrs: { "user.color": Buffer.from("blue") },
    });
    expect(entry).toMatchObject({ permissions: "-rw-r-----", owner: "nobody", group: "nogroup", xattrs: {} });
    expect(entry?.modifiedTime).toMatchObject({ seconds: -1n, nanos: 999_999_999 });
    const described = await filesystem.stat({ path: `${path}/link`, followSymlinks: true, xattrs: true });
    expect(Buffer.from(described.entry?.xattrs["user.color"] ?? []).toString()).toBe("blue");
    expect(await failure(filesystem.remove({ path: `${directory.path}/a` }))).toMatchObject({
      code: "FailedPrecondition",
      reason: "ENOTEMPTY",
      message: `cannot remove ${directory.path}/a: directory not empty`,
    });
    expect(await filesystem.remove({ path: `${directory.path}/a`, recursive: true })).toMatchObject({ removed: 4n });
    expect(await failure(filesystem.remove({ path }))).toMatchObject({ code: "NotFound", reason: "ENOENT" });
    expect(await filesystem.remove({ path, missingOk: true })).toMatchObject({ removed: 0n });
  });

  it("hold names that are not UTF-8, which every method takes", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    const raw = Buffer.from([0x61, 0xff, 0xc3, 0x28, 0x80]);
    const rawPath = Buffer.concat([Buffer.from(`${directory.path}/`), raw]);
    writeFileSync(rawPath, "before");
    // The longest name that there is, each byte of which is three on the wire.
    const longest = Buffer.alloc(255, 0xfe);
    mkdirSync(Buffer.concat([Buffer.from(`${directory.path}/`), longest]));
    const [entry, long] = await list(clients, directory.path);
    expect(Buffer.from(entry?.rawName ?? []).equals(raw)).toBe(true);
    expect(Buffer.from(long?.rawName ?? []).equals(longest)).toBe(true);
    const path = entry?.path ?? "";
    expect((await filesystem.stat({ path })).entry).toMatchObject({ path, size: 6n });
    await filesystem.writeFile(upload(path, "after that"));
    expect(readFileSync(rawPath, "utf8")).toBe("after that");
    let read = "";
    for await (const { response } of filesystem.readFile({ path }))
      if (response.case === "chunk") read += Buffer.from(response.value).toString();
    expect(read).toBe("after that");
    expect((await filesystem.setAttributes({ path, mode: 0o600 })).entry?.mode).toBe(0o600);
    const below = `${long?.path}/${entry?.name}`;
    expect(await filesystem.makeDirectory({ path: below })).toMatchObject({ created: true, entry: { path: below } });
    expect((await list(clients, long?.path ?? "")).map((each) => each.path)).toEqual([below]);
    for (const gone of [path, long?.path ?? ""]) await filesystem.remove({ path: gone, recursive: true });
    expect(await list(clients, directory.path)).toEqual([]);
  });
});

describe("directories", () => {
  it("are the acting user's: rights, owners, and what could not be read", async () => {
    await using daemon = await startDaemon({ args: ["--user", "nobody"] });
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    mkdirSync(`${directory.path}/closed/in`, { recursive: true });
    chmodSync(`${directory.path}/closed`, 0o700);
    expect(await failure(filesystem.makeDirectory({ path: `${directory.path}/new` }))).toMatchObject({
      code: "PermissionDenied",
      reason: "EACCES",
    });
    expect(await failure(filesystem.remove({ path: `${directory.path}/closed`, recursive: true }))).toMatchObject({
      code: "PermissionDenied",
      path: `${directory.path}/closed`,
    });
    expect(await failure(filesystem.setAttributes({ path: directory.path, mode: 0o777 }))).toMatchObject({ reason: "EPERM" });
    expect(await failure(list(clients, `${directory.path}/closed`))).toMatchObject({
      code: "PermissionDenied",
      reason: "EACCES",
    });
    const messages = [];
    for await (const message of filesystem.listDirectory({ path: directory.path, depth: 0 })) messages.push(message);
    expect(messages.flatMap(({ entries }) => entries.map(({ name }) => name))).toEqual(["closed"]);
    expect(messages.flatMap(({ unreadable }) => unreadable)).toMatchObject([
      { path: `${directory.path}/closed`, reason: "EACCES", message: "permission denied" },
    ]);
    // As root it is all there.
    expect((await list(clients, directory.path, { depth: 0, user: "root" })).length).toBe(2);
    expect(await filesystem.remove({ path: `${directory.path}/closed`, recursive: true, user: "root" })).toMatchObject({
      removed: 2n,
    });
  });

  it("are below the root, which stays", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/root/in`, { recursive: true });
    writeFileSync(`${directory.path}/outside`, "");
    symlinkSync("/../outside", `${directory.path}/root/link`);
    await using daemon = await startDaemon({ args: ["--root", `${directory.path}/root`] });
    await using clients = connectTo(daemon.url);
    const { filesystem } = clients;
    expect((await list(clients, "/", { depth: 0 })).map((entry) => entry.path)).toEqual(["/in", "/link"]);
    for (const path of ["/", "/..", "/in/..", "//", "/."]) {
      expect(await failure(filesystem.remove({ path, recursive: true })), path).toMatchObject({
        code: "FailedPrecondition",
        reason: "ROOT_PROTECTED",
        path,
      });
    }
    expect(await failure(filesystem.setAttributes({ path: "/link", mode: 0 }))).toMatchObject({ code: "NotFound" });
    expect(await filesystem.makeDirectory({ path: "/../../made" })).toMatchObject({
      entry: { path: "/../../made", name: "made" },
    });
    expect(lstatSync(`${directory.path}/root/made`).isDirectory()).toBe(true);
    expect(await filesystem.remove({ path: "/link" })).toMatchObject({ removed: 1n });
    expect(lstatSync(`${directory.path}/outside`).isFile()).toBe(true);
    rmSync(`${directory.path}/root`, { recursive: true });
  });

  it("refuse what cannot be meant", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    const { path } = directory;
    const refused: [() => Promise<unknown>, string, string][] = [
      [() => filesystem.makeDirectory({ path, mode: 0o10000 }), "INVALID_ARGUMENT", "invalid mode: 010000"],
      [() => filesystem.setAttributes({ path, mode: 0o10000 }), "INVALID_ARGUMENT", "invalid mode"],
      [() => filesystem.setAttributes({ path, owner: "nobody-at-all" }), "USER_NOT_FOUND", 'no such user: "nobody-at-all"'],
      [() => filesystem.setAttributes({ path, group: "no-group" }), "GROUP_NOT_FOUND", 'no such group: "no-group"'],
      [() => filesystem.setAttributes({ path, removeXattrs: ["trusted.a"] }), "INVALID_ARGUMENT", 'does not begin with "user."'],
      [() => filesystem.setAttributes({ path, modifiedTime: { seconds: 0n, nanos: -1 } }), "INVALID_ARGUMENT", "invalid time"],
      [() => filesystem.remove({ path: `${path}/.` }), "INVALID_PATH", "ending in dots"],
      [() => filesystem.makeDirectory({ path: "" }), "INVALID_PATH", "it is empty"],
    ];
    for (const [call, reason, message] of refused) {
      const failed = await failure(call());
      expect(failed).toMatchObject({ code: "InvalidArgument", reason });
      expect(failed.message).toContain(message);
    }
    expect(
      await failure(filesystem.setAttributes({ path: "/proc/self/status", setXattrs: { "user.a": Buffer.of(1) } })),
    ).toMatchObject({
      code: "Unimplemented",
    });
  });
});
