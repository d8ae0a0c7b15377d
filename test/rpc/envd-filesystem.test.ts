import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { type Client, Code, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { EventType, Filesystem, type FilesystemEvent, FileType } from "../../src/gen/envd/filesystem/filesystem_pb.js";
import { connectTo } from "../helpers/clients.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "./support/http1.js";

type Client_ = Client<typeof Filesystem>;

async function withEnvd(test: (client: Client_, directory: string, daemon: Daemon) => Promise<void>): Promise<void> {
  using directory = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--insecure-no-auth", "--envd-user", "nobody"], env: {} });
  await using clients = connectTo(daemon.url, { protocol: "Connect over HTTP/1.1", token: null });
  await test(createClient(Filesystem, clients.transport), directory.path, daemon);
}

const basic = (user: string) => ({ headers: { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}` } });
const failsWith = (call: Promise<unknown>, code: Code) => expect(call).rejects.toMatchObject({ code });
const shown = ({ type, name }: FilesystemEvent) => `${EventType[type]} ${name}`;

async function upload(daemon: Daemon, path: string, body: string, headers: Record<string, string> = {}): Promise<void> {
  const type = { "content-type": "application/octet-stream", "content-length": String(body.length) };
  const options = { method: "POST", headers: { ...type, ...headers } };
  expect(await ask(daemon, `/files?path=${encodeURIComponent(path)}`, options, body)).toMatchObject({ status: 200 });
}

describe("Stat of envd", () => {
  it("shows entries as Go does, and links as what they lead to", () =>
    withEnvd(async ({ stat }, directory, daemon) => {
      const path = `${directory}/file`;
      await upload(daemon, path, "content", { "x-metadata-by": "me" });
      symlinkSync("file", `${directory}/link`);
      symlinkSync("gone", `${directory}/broken`);
      const file = { type: FileType.FILE, mode: 0o644, metadata: { by: "me" }, owner: "nobody", group: "nogroup" };
      expect((await stat({ path })).entry).toMatchObject({ ...file, name: "file", path, size: 7n, permissions: "-rw-r--r--" });
      expect((await stat({ path: `${directory}/link` })).entry).toMatchObject({
        type: FileType.FILE,
        mode: 0o644,
        metadata: { by: "me" },
        size: 4n,
        owner: "root",
        permissions: "Lrwxrwxrwx",
        symlinkTarget: path,
      });
      expect((await stat({ path: `${directory}/broken` })).entry).toMatchObject({
        type: FileType.UNSPECIFIED,
        mode: 0,
        symlinkTarget: `${directory}/broken`,
      });
      expect((await stat({ path: "/tmp" })).entry).toMatchObject({ permissions: "dtrwxrwxrwx", mode: 0o777 });
      expect((await stat({ path: "/dev/null" })).entry).toMatchObject({ permissions: "Dcrw-rw-rw-", type: 0 });
      expect((await stat({ path: `${directory}/./file` })).entry?.path).toContain("/./");
    }));

  it("has the codes of the contract", () =>
    withEnvd(async ({ stat }, directory) => {
      writeFileSync(`${directory}/file`, "");
      await failsWith(stat({ path: `${directory}/none` }), Code.NotFound);
      await failsWith(stat({ path: `${directory}/file/below` }), Code.Internal);
      await failsWith(stat({ path: "~root" }), Code.InvalidArgument);
      await failsWith(stat({ path: "a\0b" }), Code.Internal);
      await failsWith(stat({ path: "/" }, basic("no-such-user")), Code.Unauthenticated);
      await failsWith(stat({ path: "/" }, basic("0")), Code.Unauthenticated);
      await failsWith(stat({ path: "/" }, basic("")), Code.Unauthenticated);
      expect((await stat({ path: "~" }, basic("root"))).entry).toMatchObject({ path: "/root" });
      expect((await stat({ path: "." }, basic("root"))).entry).toMatchObject({ path: "/root" });
    }));
});

describe("directories of envd", () => {
  it("are listed in order, as deep as asked for", () =>
    withEnvd(async ({ listDir }, directory) => {
      mkdirSync(`${directory}/b/c/d`, { recursive: true });
      writeFileSync(`${directory}/a`, "");
      symlinkSync("b", `${directory}/link`);
      const names = async (path: string, depth: number) =>
        (await listDir({ path, depth })).entries.map((entry) => entry.path.slice(directory.length));
      expect(await names(directory, 0)).toEqual(["/a", "/b", "/link"]);
      expect(await names(`${directory}/x/..//`, 2)).toEqual(["/a", "/b", "/b/c", "/link"]);
      expect(await names(`${directory}/link`, 9)).toEqual(["/link/c", "/link/c/d"]);
      await failsWith(listDir({ path: `${directory}/none` }), Code.NotFound);
      await failsWith(listDir({ path: `${directory}/a` }), Code.InvalidArgument);
      await failsWith(listDir({ path: `${directory}/a/b` }), Code.Internal);
      symlinkSync("circle", `${directory}/circle`);
      await failsWith(listDir({ path: `${directory}/circle` }), Code.FailedPrecondition);
    }));

  it("are made with their parents, and belong to the user", () =>
    withEnvd(async ({ makeDir }, directory) => {
      const path = `${directory}/a/b`;
      expect((await makeDir({ path })).entry).toMatchObject({ path, owner: "nobody", permissions: "drwxr-xr-x" });
      expect([statSync(`${directory}/a`).uid, statSync(directory).uid]).toEqual([65_534, 0]);
      await failsWith(makeDir({ path }), Code.AlreadyExists);
      writeFileSync(`${directory}/file`, "");
      await failsWith(makeDir({ path: `${directory}/file` }), Code.InvalidArgument);
      await failsWith(makeDir({ path: `${directory}/file/below` }), Code.Internal);
      symlinkSync("gone", `${directory}/broken`);
      await failsWith(makeDir({ path: `${directory}/broken` }), Code.Internal);
    }));

  it("are moved and removed with what is in them", () =>
    withEnvd(async ({ move, remove }, directory) => {
      mkdirSync(`${directory}/a`);
      writeFileSync(`${directory}/a/file`, "content");
      const destination = `${directory}/x/y`;
      expect((await move({ source: `${directory}/a`, destination })).entry).toMatchObject({ path: destination, owner: "root" });
      expect(statSync(`${directory}/x`).uid).toBe(65_534);
      expect(readFileSync(`${destination}/file`, "utf8")).toBe("content");
      await failsWith(move({ source: `${directory}/a`, destination }), Code.Internal);
      await failsWith(move({ source: `${directory}/a`, destination: `${directory}/z` }), Code.NotFound);
      await failsWith(remove({ path: `${destination}/file/below` }), Code.Internal);
      await remove({ path: `${directory}/x` });
      await remove({ path: `${directory}/x` });
      expect(statSync(`${directory}/x`, { throwIfNoEntry: false })).toBeUndefined();
    }));
});

describe("a watcher of envd", () => {
  it.each([false, true])("tells exactly what an upload is (recursive: %s)", (recursive) =>
    withEnvd(async (client, directory, daemon) => {
      const { watcherId } = await client.createWatcher({ path: directory, recursive, includeEntry: true });
      const events = async () => (await client.getWatcherEvents({ watcherId })).events;
      const name = `${directory}/file`;
      await upload(daemon, name, "content");
      const made = await events();
      expect(made.map(shown)).toEqual(["CREATE file", "CHMOD file", "WRITE file"]);
      expect(made[0]?.entry).toMatchObject({ path: name, size: 7n });
      await upload(daemon, name, "again");
      expect((await events()).map(shown)).toEqual(["CHMOD file", "WRITE file", "WRITE file"]);
      await upload(daemon, `${directory}/empty`, "");
      expect((await events()).map(shown)).toEqual(["CREATE empty", "CHMOD empty"]);
      renameSync(name, `${directory}/new`);
      const renamed = await events();
      expect(renamed.map(shown)).toEqual(["RENAME file", "CREATE new"]);
      expect(renamed.map(({ entry }) => entry?.name)).toEqual([undefined, "new"]);
      expect(await events()).toEqual([]);
      await client.removeWatcher({ watcherId });
      await failsWith(events(), Code.NotFound);
      await failsWith(client.removeWatcher({ watcherId }), Code.NotFound);
    }),
  );

  it("tells all of what is done in a directory from the moment that it is said to be there", () =>
    withEnvd(async (client, directory, daemon) => {
      const file = ["CREATE", "CHMOD", "WRITE"];
      const inTree = async (_: unknown, at: number) => {
        const [path, elsewhere] = [`${directory}/${at}`, `${directory}/elsewhere-${at}`];
        for (const made of [path, elsewhere]) await client.makeDir({ path: made });
        const { watcherId } = await client.createWatcher({ path, recursive: true });
        const told = async () => (await client.getWatcherEvents({ watcherId })).events.map(shown);
        await client.makeDir({ path: `${path}/a` });
        await upload(daemon, `${path}/a/file`, "content");
        expect(await told()).toEqual(["CREATE a", "CHMOD a", ...file.map((type) => `${type} a/file`)]);
        await client.move({ source: elsewhere, destination: `${path}/b` });
        await upload(daemon, `${path}/b/file`, "content");
        expect(await told()).toEqual(["CREATE b", ...file.map((type) => `${type} b/file`)]);
        // With its parents a file is there before they are watched; what is in it is not.
        await upload(daemon, `${path}/c/file`, "content");
        expect(await told()).toEqual(expect.arrayContaining(["CREATE c", "CREATE c/file", "WRITE c/file"]));
      };
      await Promise.all(Array.from({ length: 50 }, inTree));
    }));

  it("tells what appears below, and what became of the directory itself", () =>
    withEnvd(async (client, directory) => {
      const path = `${directory}/watched`;
      mkdirSync(`${directory}/tree/a/b`, { recursive: true });
      writeFileSync(`${directory}/tree/a/file`, "");
      mkdirSync(path);
      const { watcherId } = await client.createWatcher({ path, recursive: true });
      const events = async () => (await client.getWatcherEvents({ watcherId })).events.map(shown);
      renameSync(`${directory}/tree`, `${path}/tree`);
      expect(await events()).toEqual(["CREATE tree", "CREATE tree/a", "CREATE tree/a/b", "CREATE tree/a/file"]);
      rmSync(`${path}/tree`, { recursive: true });
      expect((await events()).toSorted()).toEqual(["REMOVE tree", "REMOVE tree/a", "REMOVE tree/a/b", "REMOVE tree/a/file"]);
      renameSync(path, `${directory}/elsewhere`);
      expect(await events()).toEqual(["RENAME ."]);
      mkdirSync(path);
      expect(await events()).toEqual([]);
      await failsWith(client.createWatcher({ path: `${directory}/none` }), Code.NotFound);
      writeFileSync(`${directory}/file`, "");
      await failsWith(client.createWatcher({ path: `${directory}/file` }), Code.InvalidArgument);
    }));
});

describe("WatchDir of envd", () => {
  it("starts, tells, and keeps alive as often as asked", () =>
    withEnvd(async (client, directory) => {
      const headers = { "keepalive-ping-interval": "1" };
      const kinds: string[] = [];
      for await (const { event } of client.watchDir({ path: directory }, { headers })) {
        kinds.push(event.case === "filesystem" ? shown(event.value) : (event.case ?? ""));
        if (event.case === "start") mkdirSync(`${directory}/made`);
        if (event.case === "keepalive") break;
      }
      expect(kinds).toEqual(["start", "CREATE made", "keepalive"]);
    }));
});
