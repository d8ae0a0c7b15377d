import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { FileType, MoveMode } from "../../src/gen/picod/v1/filesystem_pb.js";
import { connectTo, PROTOCOLS } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { AS_NOBODY } from "../helpers/run-picod.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

describe.each(PROTOCOLS)("%s", (protocol) => {
  it("copies a tree and moves the copy to another file system", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("tree/sub"), { recursive: true });
    writeFileSync(at("tree/sub/file"), "content");
    const copied = await clients.filesystem.copy({ source: at("tree"), destination: at("copy") });
    expect(copied).toMatchObject({ entries: 3n, bytes: 7n, entry: { name: "copy", type: FileType.DIRECTORY } });
    const moved = await clients.filesystem.move({ source: at("copy"), destination: `${other.path}/a/moved` });
    expect(moved.entry).toMatchObject({ path: `${other.path}/a/moved`, type: FileType.DIRECTORY });
    expect(readFileSync(`${other.path}/a/moved/sub/file`, "utf8")).toBe("content");
    expect(readdirSync(directory.path)).toEqual(["tree"]);
  });
});

describe("errors", () => {
  it("have their codes, and name the path", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("directory/sub"), { recursive: true });
    for (const name of ["file", "other"]) writeFileSync(at(name), "x");
    writeFileSync(`${other.path}/file`, "x");
    const { filesystem } = clients;
    const refused: [call: () => Promise<unknown>, code: Code, message: string][] = [
      [() => filesystem.copy({ source: at("none"), destination: at("x") }), Code.NotFound, at("none")],
      [
        () => filesystem.copy({ source: at("file"), destination: at("other"), mustNotExist: true }),
        Code.AlreadyExists,
        at("other"),
      ],
      [() => filesystem.copy({ source: at("directory"), destination: at("file") }), Code.FailedPrecondition, at("file")],
      [
        () => filesystem.copy({ source: at("directory"), destination: at("directory/x") }),
        Code.InvalidArgument,
        at("directory/x"),
      ],
      [() => filesystem.copy({ source: "", destination: at("x") }), Code.InvalidArgument, "empty"],
      [() => filesystem.copy({ source: at("file"), destination: at("x"), user: "nobody" }), Code.PermissionDenied, at("x")],
      [() => filesystem.move({ source: at("none"), destination: at("x") }), Code.NotFound, at("none")],
      [
        () => filesystem.move({ source: at("file"), destination: at("other"), mode: MoveMode.NO_REPLACE }),
        Code.AlreadyExists,
        at("other"),
      ],
      [() => filesystem.move({ source: at("file"), destination: at("directory") }), Code.FailedPrecondition, at("directory")],
      [
        () => filesystem.move({ source: at("directory"), destination: at("directory/sub/x") }),
        Code.InvalidArgument,
        "in the other",
      ],
      [() => filesystem.move({ source: at("file"), destination: `${other.path}/file`, mode: 2 }), Code.Unimplemented, other.path],
      [
        () => filesystem.move({ source: at("file"), destination: at("x"), mode: 9 as MoveMode }),
        Code.InvalidArgument,
        "invalid mode",
      ],
      [() => filesystem.move({ source: "/", destination: at("x") }), Code.FailedPrecondition, "/"],
    ];
    for (const [call, code, message] of refused) {
      await expect(call(), message).rejects.toMatchObject({ code, rawMessage: expect.stringContaining(message) });
    }
    expect(readdirSync(directory.path)).toEqual(["directory", "file", "other"]);
  });
});

describe("a daemon", () => {
  it("undoes what is cancelled, and answers others meanwhile", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    const source = `${directory.path}/source`;
    execFileSync("dd", ["if=/dev/zero", `of=${source}`, "bs=1M", "count=400", "status=none"]);
    const cancel = new AbortController();
    const copying = clients.filesystem.copy({ source, destination: `${other.path}/copy/here` }, { signal: cancel.signal });
    const ended = copying.then(
      () => "copied",
      () => "cancelled",
    );
    await eventually("it has begun", () => readdirSync(other.path).length > 0);
    const began = performance.now();
    await clients.filesystem.stat({ path: "/" });
    expect(performance.now() - began).toBeLessThan(1000);
    cancel.abort();
    expect(await ended).toBe("cancelled");
    await eventually("it is undone", () => readdirSync(other.path).length === 0);
  });

  it("that is no root does what its user could, within its root", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("open"));
    chmodSync(at("open"), 0o777);
    mkdirSync(at("closed"));
    writeFileSync(at("closed/file"), "x");
    writeFileSync(at("open/secret"), "x", { mode: 0o600 });
    symlinkSync("/etc", at("open/link"));
    await using daemon = await startDaemon({ wrapper: AS_NOBODY, args: ["--root", directory.path] });
    await using clients = connectTo(daemon.url);
    const { filesystem } = clients;
    await filesystem.copy({ source: "/closed/file", destination: "/open/new/file" });
    await filesystem.move({ source: "/open/new/file", destination: "/../open/moved" });
    const refused = [
      filesystem.copy({ source: "/open/secret", destination: "/open/x" }),
      filesystem.copy({ source: "/open/moved", destination: "/closed/x" }),
      filesystem.move({ source: "/closed/file", destination: "/open/x" }),
    ];
    for (const call of refused) await expect(call).rejects.toMatchObject({ code: Code.PermissionDenied });
    await expect(filesystem.copy({ source: "/open/link/passwd", destination: "/open/x" })).rejects.toMatchObject({
      code: Code.NotFound,
    });
    expect(readdirSync(at("open"))).toEqual(["link", "moved", "new", "secret"]);
  });
});
