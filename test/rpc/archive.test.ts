import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code, type ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import type { ReadArchiveSummary } from "../../src/gen/picod/v1/filesystem_pb.js";
import { contentOf, treeOf } from "../helpers/archives.js";
import { type Clients, connectTo, PROTOCOLS } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

type ReadRequest = Parameters<Clients["filesystem"]["readArchive"]>[0];

async function read({ filesystem }: Clients, request: ReadRequest) {
  const chunks: Uint8Array[] = [];
  let summary: ReadArchiveSummary | undefined;
  for await (const { response } of filesystem.readArchive(request)) {
    if (response.case === "chunk") chunks.push(response.value);
    if (response.case === "summary") summary = response.value;
  }
  return { archive: Buffer.concat(chunks), summary };
}

function write({ filesystem }: Clients, metadata: object, archive: Uint8Array) {
  async function* messages() {
    yield { request: { case: "metadata" as const, value: metadata } };
    for (let at = 0; at < archive.length; at += 65_536) {
      yield { request: { case: "chunk" as const, value: archive.slice(at, at + 65_536) } };
    }
  }
  return filesystem.writeArchive(messages());
}

function makeTree(directory: string): void {
  mkdirSync(join(directory, "src/deep"), { recursive: true });
  mkdirSync(join(directory, "node_modules/module"), { recursive: true });
  writeFileSync(join(directory, ".gitignore"), "node_modules\n");
  writeFileSync(join(directory, "src/a.ts"), "a");
  writeFileSync(join(directory, "src/deep/b.ts"), "b".repeat(300_000));
  writeFileSync(join(directory, "src/deep/b.js"), "b");
  writeFileSync(join(directory, "node_modules/module/c.ts"), "c");
}

it.each(PROTOCOLS)("a directory goes out and comes back over %s", async (protocol) => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url, { protocol });
  using temporary = temporaryDirectory();
  const [from, to] = ["from", "to"].map((name) => join(temporary.path, name)) as [string, string];
  makeTree(from);
  const { archive, summary } = await read(clients, { path: from, gzip: true });
  const sha256 = createHash("sha256").update(archive).digest("hex");
  expect(summary).toMatchObject({ entries: 10n, archiveBytes: BigInt(archive.length), sha256, unreadableCount: 0n });
  const written = await write(clients, { path: to, atomic: true, sha256: sha256.toUpperCase() }, archive);
  expect(written).toMatchObject({ entries: 10n, bytes: 300_016n, sha256, entry: { path: to, name: "to" } });
  expect(treeOf(to)).toEqual(treeOf(from));
  expect(contentOf(to)).toEqual(contentOf(from));
});

it("takes what patterns want, with the directories on the way", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using temporary = temporaryDirectory();
  makeTree(temporary.path);
  const names = async (request: ReadRequest) => {
    const { archive } = await read(clients, { path: temporary.path, ...request });
    return execFileSync("tar", ["t"], { input: archive, encoding: "utf8" }).trimEnd().split("\n");
  };
  expect(await names({ include: ["**/*.js"] })).toEqual(["./", "src/", "src/deep/", "src/deep/b.js"]);
  expect(await names({ exclude: ["src"], gitignore: true })).toEqual(["./", ".gitignore"]);
});

it("changes nothing when the checksum is wrong, and says which entry is", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using temporary = temporaryDirectory();
  const to = join(temporary.path, "to");
  mkdirSync(to);
  writeFileSync(join(to, "old"), "old");
  makeTree(join(temporary.path, "from"));
  const { archive } = await read(clients, { path: join(temporary.path, "from") });
  const failure = (call: Promise<unknown>): Promise<ConnectError> =>
    call.then(
      () => expect.fail("no error"),
      (error) => error,
    );
  const wrong = await failure(write(clients, { path: to, atomic: true, sha256: "0".repeat(64) }, archive));
  expect(wrong.code).toBe(Code.DataLoss);
  const cut = await failure(write(clients, { path: to, atomic: true }, archive.subarray(0, 5000)));
  expect(cut).toMatchObject({ code: Code.InvalidArgument });
  expect(cut.rawMessage).toContain("cut off");
  const many = await failure(write(clients, { path: to, atomic: true, maxEntries: 3n }, archive));
  expect(many.code).toBe(Code.ResourceExhausted);
  expect(readdirSync(to)).toEqual(["old"]);
  expect(readdirSync(temporary.path).sort()).toEqual(["from", "to"]);
});

it("stays inside the --root", async () => {
  using temporary = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--root", temporary.path] });
  await using clients = connectTo(daemon.url);
  makeTree(join(temporary.path, "from"));
  const { archive } = await read(clients, { path: "/from" });
  await write(clients, { path: "/../../new/to", atomic: true }, archive);
  expect(readFileSync(join(temporary.path, "new/to/src/a.ts"), "utf8")).toBe("a");
});
