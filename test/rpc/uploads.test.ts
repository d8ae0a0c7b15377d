import { createHash, randomBytes } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { Durability } from "../../src/gen/picod/v1/filesystem_pb.js";
import { type Clients, connectTo, PROTOCOLS } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { openFilesIn } from "./support/open-files.js";

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
const digest = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

interface Part {
  readonly uploadId: string;
  readonly path: string;
  readonly offset?: bigint;
  readonly mode?: number;
  readonly user?: string;
  readonly size?: bigint;
  readonly sha256?: string;
  readonly durability?: Durability;
}

/** The messages of one part; `hold` is called behind them, and what it returns keeps the stream open. */
async function* messages(part: Part, content: Uint8Array, hold?: () => Promise<void>) {
  yield { request: { case: "metadata" as const, value: part } };
  for (let sent = 0; sent < content.length; sent += 256 * 1024)
    yield { request: { case: "chunk" as const, value: content.subarray(sent, sent + 256 * 1024) as Uint8Array<ArrayBuffer> } };
  await hold?.();
}

const add = ({ filesystem }: Clients, part: Part, content: Uint8Array | string) =>
  filesystem.writeFile(messages(part, Buffer.from(content)));

/** Code, reason and message of a call that fails. */
async function failure(call: Promise<unknown>): Promise<{ code: Code; reason: string; message: string; metadata: object }> {
  const error = await call.then(
    () => expect.unreachable("it did not fail"),
    (thrown) => ConnectError.from(thrown),
  );
  const [info] = error.findDetails(ErrorInfoSchema);
  return { code: error.code, reason: info?.reason ?? "", message: error.rawMessage, metadata: info?.metadata ?? {} };
}

describe.each(PROTOCOLS)("a pending upload (%s)", (protocol) => {
  it("is collected, described, listed and committed", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    const [path, uploadId] = [`${directory.path}/new/file`, "an-id_1.2:3"];
    const began = Date.now();
    const content = Buffer.from("hello world");
    const { entry, bytesWritten, sha256, upload } = await add(
      clients,
      { path, uploadId, offset: 6n, size: 5n, sha256: digest(content.subarray(6)).toUpperCase() },
      content.subarray(6),
    );
    expect([entry, bytesWritten, sha256]).toEqual([undefined, 5n, digest(content.subarray(6))]);
    expect(upload).toMatchObject({ uploadId, path, received: [{ start: 6n, end: 11n }] });
    for (const one of [upload, (await filesystem.getUpload({ uploadId })).upload]) {
      if (one?.createdTime === undefined || one.expireTime === undefined) throw new Error("no times");
      expect(timestampMs(one.createdTime)).toBeGreaterThanOrEqual(began);
      expect(timestampMs(one.expireTime)).toBeGreaterThanOrEqual(began + HOUR_MS);
      expect(timestampMs(one.expireTime)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
    }
    await add(clients, { path, uploadId, offset: 0n }, content.subarray(0, 6));
    await add(clients, { path: `${directory.path}/second`, uploadId: "second" }, "");
    const { uploads } = await filesystem.listUploads({});
    expect(uploads.map((one) => [one.uploadId, one.received.map(({ start, end }) => [start, end])])).toEqual([
      [uploadId, [[0n, 11n]]],
      ["second", []],
    ]);
    const request = { uploadId, size: 11n, sha256: digest(content), durability: Durability.SYNC };
    const first = await filesystem.commitUpload(request);
    expect(first).toMatchObject({ entry: { path, size: 11n, mode: 0o644 }, sha256: digest(content) });
    expect(await filesystem.commitUpload(request)).toEqual(first);
    expect(readFileSync(path).equals(content)).toBe(true);
    await filesystem.commitUpload({ uploadId: "second", size: 0n });
    expect(statSync(`${directory.path}/second`).size).toBe(0);
    expect((await filesystem.listUploads({})).uploads).toEqual([]);
    expect(readdirSync(directory.path).toSorted()).toEqual(["new", "second"]);
    await eventually("its file is closed", () => openFilesIn(daemon, directory.path).length === 0);
  });

  it("is aborted, and a part that arrives hears of it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const { filesystem } = clients;
    const [path, uploadId] = [`${directory.path}/new/file`, "up"];
    const held = Promise.withResolvers<void>();
    const failed = failure(filesystem.writeFile(messages({ path, uploadId }, Buffer.from("abc"), () => held.promise)));
    await eventually("its bytes have arrived", () =>
      filesystem.getUpload({ uploadId }).then(
        ({ upload }) => upload?.received[0]?.end === 3n,
        () => false,
      ),
    );
    expect(await failure(filesystem.commitUpload({ uploadId, size: 3n }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "UPLOAD_BUSY",
    });
    await filesystem.abortUpload({ uploadId });
    // Of HTTP/1.1 some clients look at the answer when they have sent everything.
    if (protocol.endsWith("HTTP/1.1")) held.resolve();
    expect(await failed).toMatchObject({ code: Code.NotFound, reason: "UPLOAD_NOT_FOUND" });
    held.resolve();
    expect(readdirSync(directory.path)).toEqual([]);
    expect(await failure(filesystem.abortUpload({ uploadId }))).toMatchObject({
      code: Code.NotFound,
      reason: "UPLOAD_NOT_FOUND",
    });
    await eventually("its file is closed", () => openFilesIn(daemon, directory.path).length === 0);
  });
});

describe("parts of 64 MiB", () => {
  it("may arrive in parallel, on connections of their own, and break off", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const [path, uploadId] = [`${directory.path}/file`, "parallel"];
    const content = randomBytes(64 * MIB);
    const starts = Array.from({ length: 8 }, (_, index) => index * 8 * MIB);
    const before = daemon.descriptors();
    // Each is cut in its middle, and then goes on where the daemon says that bytes are missing.
    await Promise.all(
      starts.map(async (start) => {
        await using clients = connectTo(daemon.url);
        const cut = new AbortController();
        const half = content.subarray(start, start + 4 * MIB + start / 16);
        const part = { path, uploadId, offset: BigInt(start) };
        const sent = Promise.withResolvers<void>();
        const hold = () => {
          sent.resolve();
          return new Promise<void>(() => undefined);
        };
        const broken = clients.filesystem.writeFile(messages(part, half, hold), { signal: cut.signal });
        const failed = expect(broken).rejects.toThrow();
        await sent.promise;
        await eventually("half of it has arrived", async () => {
          const { upload } = await clients.filesystem.getUpload({ uploadId }).catch(() => ({ upload: undefined }));
          const end = BigInt(start + half.length);
          return upload?.received.some((range) => range.start <= BigInt(start) && range.end >= end) ?? false;
        });
        cut.abort();
        await failed;
      }),
    );
    await using clients = connectTo(daemon.url);
    const { filesystem } = clients;
    const busy = async () => (await failure(filesystem.commitUpload({ uploadId, size: BigInt(content.length) }))).reason;
    await eventually("the daemon has noticed", async () => (await busy()) === "UPLOAD_INCOMPLETE");
    const { message } = await failure(filesystem.commitUpload({ uploadId, size: BigInt(content.length) }));
    expect(message).toContain(`missing are bytes ${4 * MIB} to ${8 * MIB}, ${8 * MIB + 4.5 * MIB} to ${16 * MIB}`);
    const { upload } = await filesystem.getUpload({ uploadId });
    const gaps = (upload?.received ?? []).map(({ end }, index) => {
      return [Number(end), Number(upload?.received[index + 1]?.start ?? content.length)] as const;
    });
    expect(gaps).toHaveLength(8);
    await Promise.all(
      gaps.map(async ([start, end]) => {
        await using another = connectTo(daemon.url);
        const missing = content.subarray(start, end);
        const part = { path, uploadId, offset: BigInt(start), size: BigInt(missing.length), sha256: digest(missing) };
        await another.filesystem.writeFile(messages(part, missing));
      }),
    );
    await filesystem.commitUpload({ uploadId, size: BigInt(content.length), sha256: digest(content) });
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(readdirSync(directory.path)).toEqual(["file"]);
    await eventually("everything is closed", () => daemon.descriptors() <= before + 1);
  }, 60_000);
});

describe("a request about an upload", () => {
  it("gets the right error", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    const { filesystem } = clients;
    const [path, uploadId] = [`${directory.path}/file`, "up"];
    writeFileSync(path, "old");
    await add(clients, { path, uploadId, mode: 0o600, offset: 1n }, "bc");
    const part = (change: Partial<Part>) => add(clients, { path, uploadId, mode: 0o600, ...change }, "x");
    const commit = (change: object) => filesystem.commitUpload({ uploadId, size: 3n, ...change });
    const cases: [() => Promise<unknown>, Code, string, RegExp | string][] = [
      [() => part({ uploadId: "a b" }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid upload_id/],
      [() => part({ uploadId: "x".repeat(129) }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid upload_id/],
      [() => part({ durability: Durability.SYNC }), Code.InvalidArgument, "INVALID_ARGUMENT", /durability/],
      [() => part({ mode: 0o10000 }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid mode/],
      [() => part({ sha256: "abc" }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid sha256/],
      [() => part({ mode: 0o644 }), Code.AlreadyExists, "UPLOAD_CONFLICT", /mode differs/],
      [() => part({ path: `${path}2` }), Code.AlreadyExists, "UPLOAD_CONFLICT", /path differs/],
      [() => part({ user: "nobody" }), Code.AlreadyExists, "UPLOAD_CONFLICT", /user differs/],
      [() => part({ size: 2n }), Code.InvalidArgument, "SIZE_MISMATCH", /1 bytes arrived instead of the announced 2/],
      [() => part({ sha256: "0".repeat(64) }), Code.DataLoss, "CHECKSUM_MISMATCH", /the part has sha256/],
      [() => part({ offset: 2n ** 63n }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid offset/],
      [() => part({ size: 2n ** 50n }), Code.ResourceExhausted, "NO_SPACE", /do not fit/],
      [() => part({ path: `${path}/x`, uploadId: "2" }), Code.FailedPrecondition, "ENOTDIR", /file\/x: not a directory/],
      [() => part({ path: directory.path, uploadId: "2" }), Code.FailedPrecondition, "NOT_A_REGULAR_FILE", /directory/],
      [() => part({ path: "/etc/x", user: "nobody", uploadId: "2" }), Code.PermissionDenied, "EACCES", /\/etc\/x/],
      [() => commit({ uploadId: "" }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid upload_id/],
      [() => commit({ uploadId: "none" }), Code.NotFound, "UPLOAD_NOT_FOUND", "no such upload: none"],
      [() => commit({ user: "nobody" }), Code.NotFound, "UPLOAD_NOT_FOUND", "no such upload: up"],
      [() => commit({}), Code.FailedPrecondition, "UPLOAD_INCOMPLETE", /missing are bytes 0 to 1$/],
      [() => commit({ size: 2n }), Code.InvalidArgument, "SIZE_MISMATCH", /bytes have arrived up to 3/],
      [() => commit({ size: 2n ** 64n - 1n }), Code.InvalidArgument, "INVALID_ARGUMENT", /invalid size/],
      [() => filesystem.getUpload({ uploadId: "none" }), Code.NotFound, "UPLOAD_NOT_FOUND", "no such upload: none"],
      [() => filesystem.abortUpload({ uploadId, user: "nobody" }), Code.NotFound, "UPLOAD_NOT_FOUND", "no such upload: up"],
    ];
    for (const [call, code, reason, message] of cases)
      expect(await failure(call())).toMatchObject({ code, reason, message: expect.stringMatching(message) });
    // What arrived of a part that was too short counts, but for that with the wrong checksum, which was written over it.
    expect((await filesystem.getUpload({ uploadId })).upload?.received).toMatchObject([{ start: 1n, end: 3n }]);
    await add(clients, { path, uploadId, mode: 0o600 }, "a");
    const wrong = await failure(commit({ sha256: "0".repeat(64) }));
    expect(wrong).toMatchObject({ code: Code.DataLoss, reason: "CHECKSUM_MISMATCH", metadata: { path, upload_id: uploadId } });
    const exists = { precondition: { condition: { case: "mustNotExist" as const, value: true } } };
    expect(await failure(commit(exists))).toMatchObject({ code: Code.AlreadyExists, reason: "ALREADY_EXISTS" });
    const etag = { precondition: { condition: { case: "etag" as const, value: "other" } } };
    expect(await failure(commit(etag))).toMatchObject({ code: Code.FailedPrecondition, reason: "PRECONDITION_FAILED" });
    expect([readFileSync(path, "utf8"), readdirSync(directory.path)]).toEqual(["old", ["file"]]);
    await commit({});
    expect([readFileSync(path, "utf8"), statSync(path).mode & 0o7777]).toEqual(["abc", 0o600]);
  });

  it("is about those of its user", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    const { filesystem } = clients;
    const user = "nobody";
    await add(clients, { path: `${directory.path}/a/file`, uploadId: "1", user }, "abc");
    await add(clients, { path: `${directory.path}/b/file`, uploadId: "2" }, "abc");
    const ids = async (request: object) => (await filesystem.listUploads(request)).uploads.map(({ uploadId }) => uploadId);
    expect([await ids({ user }), await ids({ user: "65534" }), await ids({})]).toEqual([["1"], ["1"], ["2"]]);
    const { entry } = await filesystem.commitUpload({ uploadId: "1", size: 3n, user });
    expect(entry).toMatchObject({ owner: "nobody", path: `${directory.path}/a/file` });
    expect([statSync(`${directory.path}/a`).uid, statSync(`${directory.path}/b`).uid]).toEqual([65534, 0]);
  });
});

describe("a download that goes on", () => {
  it("does so in the same version of the file alone", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "abcdef");
    const read = async (ifEtag: string) => {
      let content = "";
      for await (const { response } of clients.filesystem.readFile({ path, offset: 3n, ifEtag }))
        if (response.case === "chunk") content += Buffer.from(response.value).toString();
      return content;
    };
    const { entry } = await clients.filesystem.stat({ path });
    expect(await read(entry?.etag ?? "")).toBe("def");
    writeFileSync(path, "other content");
    expect(await failure(read(entry?.etag ?? ""))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "PRECONDITION_FAILED",
      metadata: { path },
    });
  });
});

describe("a daemon that ends", () => {
  it.each(["SIGTERM", "SIGKILL"] as const)("leaves nothing of what is pending (%s)", async (signal) => {
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "100ms"] });
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    await add(clients, { path: `${directory.path}/file`, uploadId: "1" }, "abc");
    if (signal === "SIGTERM") await add(clients, { path: `${directory.path}/new/file`, uploadId: "2" }, "abc");
    const arriving = messages(
      { path: `${directory.path}/third`, uploadId: "3" },
      Buffer.from("abc"),
      () => new Promise(() => undefined),
    );
    const failed = failure(clients.filesystem.writeFile(arriving));
    await eventually("it has begun", () => openFilesIn(daemon, directory.path).length >= (signal === "SIGTERM" ? 3 : 2));
    daemon.child.kill(signal);
    expect((await failed).code).toBeOneOf([Code.Unavailable, Code.Canceled, Code.Aborted]);
    await daemon.exited;
    expect(readdirSync(directory.path)).toEqual([]);
  });
});
