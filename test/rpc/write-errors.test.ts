import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { type DaemonOptions, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { openFilesIn } from "./support/open-files.js";

const OLD = "the old content";
const BIG = Buffer.alloc(2_000_000, "x");
const LONG_NAME = "n".repeat(256);
const AS_NOBODY: DaemonOptions = { wrapper: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] };

interface Situation {
  readonly title: string;
  /** Options of a tmpfs that the directory is; none: it is on the disk. */
  readonly mount?: string;
  readonly daemon?: DaemonOptions;
  /** Below the directory, in which "old" is a file already. */
  readonly name: string;
  readonly size?: bigint;
  prepare?(directory: string): void;
  readonly code: Code;
  readonly reason: string;
  readonly cause: RegExp;
}

const SITUATIONS: readonly Situation[] = [
  {
    title: "the disk is full for a new file",
    mount: "size=1m",
    name: "new/parents/file",
    code: Code.ResourceExhausted,
    reason: "ENOSPC",
    cause: /no space left on device/,
  },
  {
    title: "the disk is full for a file that exists",
    mount: "size=1m",
    name: "old",
    code: Code.ResourceExhausted,
    reason: "ENOSPC",
    cause: /no space left on device/,
  },
  {
    title: "the announced size does not fit",
    mount: "size=1m",
    name: "new/file",
    size: BigInt(BIG.length),
    code: Code.ResourceExhausted,
    reason: "NO_SPACE",
    cause: /2000000 bytes do not fit, \d+ are free/,
  },
  {
    title: "there are no inodes for new parents",
    mount: "size=8m,nr_inodes=4",
    name: "new/parents/and/more/file",
    code: Code.ResourceExhausted,
    reason: "ENOSPC",
    cause: /no space left on device/,
  },
  {
    title: "the file system is read-only",
    mount: "ro",
    name: "old",
    code: Code.PermissionDenied,
    reason: "EROFS",
    cause: /read-only file system/,
  },
  {
    title: "a name is too long",
    name: `new/parents/${LONG_NAME}`,
    code: Code.InvalidArgument,
    reason: "ENAMETOOLONG",
    cause: /name too long/,
  },
  {
    title: "the name of a parent is too long",
    name: `new/${LONG_NAME}/file`,
    code: Code.InvalidArgument,
    reason: "ENAMETOOLONG",
    cause: /name too long/,
  },
  {
    title: "links go round in a circle",
    name: "loop",
    prepare: (directory) => symlinkSync("loop", `${directory}/loop`),
    code: Code.FailedPrecondition,
    reason: "ELOOP",
    cause: /too many symbolic links/,
  },
  {
    title: "links of parents go round in a circle",
    name: "loop/file",
    prepare: (directory) => symlinkSync("loop", `${directory}/loop`),
    code: Code.FailedPrecondition,
    reason: "ELOOP",
    cause: /too many symbolic links/,
  },
  {
    title: "a parent is a file",
    name: "old/file",
    code: Code.FailedPrecondition,
    reason: "ENOTDIR",
    cause: /not a directory/,
  },
  {
    title: "a link leads to where the user may not write",
    daemon: AS_NOBODY,
    name: "link",
    prepare: (directory) => {
      mkdirSync(`${directory}/closed`);
      symlinkSync("closed/file", `${directory}/link`);
      chmodSync(directory, 0o777);
    },
    code: Code.PermissionDenied,
    reason: "EACCES",
    cause: /permission denied/,
  },
  {
    title: "it is a directory",
    name: "directory",
    prepare: (directory) => mkdirSync(`${directory}/directory`),
    code: Code.FailedPrecondition,
    reason: "NOT_A_REGULAR_FILE",
    cause: /it is a directory/,
  },
];

const UPLOAD = { uploadId: "up" };

/** As a whole file, and as a part of a pending upload. */
const WAYS: readonly (readonly [title: string, more: object])[] = [
  ["a whole file", {}],
  ["a part of an upload", UPLOAD],
];

async function* messages(path: string, content: Uint8Array, more: object, hold?: Promise<void>) {
  yield { request: { case: "metadata" as const, value: { path, ...more } } };
  for (let sent = 0; sent < content.length; sent += 256 * 1024)
    yield { request: { case: "chunk" as const, value: content.subarray(sent, sent + 256 * 1024) as Uint8Array<ArrayBuffer> } };
  await hold;
}

const write = ({ filesystem }: Clients, path: string, content: Uint8Array, more: object, hold?: Promise<void>) =>
  filesystem.writeFile(messages(path, content, more, hold));

async function failure(call: Promise<unknown>): Promise<{ code: Code; reason: string; message: string; path: string }> {
  const error = await call.then(
    () => expect.unreachable("it did not fail"),
    (thrown) => ConnectError.from(thrown),
  );
  const [info] = error.findDetails(ErrorInfoSchema);
  return { code: error.code, reason: info?.reason ?? "", message: error.rawMessage, path: info?.metadata.path ?? "" };
}

/** A directory with a file in it, on a file system of its own where that is asked for. */
function preparedDirectory({ mount, prepare }: Pick<Situation, "mount" | "prepare">) {
  const directory = temporaryDirectory();
  const { path } = directory;
  const options = mount?.replace(/^ro$/, "mode=755");
  if (options !== undefined) execFileSync("mount", ["-t", "tmpfs", "-o", options, "none", path]);
  writeFileSync(`${path}/old`, OLD);
  chmodSync(`${path}/old`, 0o666);
  prepare?.(path);
  if (mount === "ro") execFileSync("mount", ["-o", "remount,ro", path]);
  const unmount = () => (mount === undefined ? undefined : execFileSync("umount", ["--lazy", path]));
  return {
    path,
    [Symbol.dispose]() {
      unmount();
      directory[Symbol.dispose]();
    },
  };
}

describe.each(WAYS)("%s cannot be written when", (_way, more) => {
  it.each(SITUATIONS)("$title", async (situation) => {
    await using daemon = await startDaemon(situation.daemon);
    await using clients = connectTo(daemon.url);
    using directory = preparedDirectory(situation);
    const { name, size, code, reason, cause } = situation;
    const tree = readdirSync(directory.path, { recursive: true }).toSorted();
    const path = `${directory.path}/${name}`;
    const failed = await failure(write(clients, path, BIG, { ...more, ...(size === undefined ? {} : { size }) }));
    expect(failed).toMatchObject({ code, reason, path });
    expect(failed.message).toContain(path);
    expect(failed.message).toMatch(cause);
    expect(readFileSync(`${directory.path}/old`, "utf8")).toBe(OLD);
    // What has arrived of a part is kept, without a name, for the rest to follow when there is room.
    const { uploads } = await clients.filesystem.listUploads({});
    for (const { uploadId } of uploads) await clients.filesystem.abortUpload({ uploadId });
    expect(uploads.length).toBe(more === UPLOAD && reason === "ENOSPC" && !/inodes/.test(situation.title) ? 1 : 0);
    expect(readdirSync(directory.path, { recursive: true }).toSorted()).toEqual(tree);
    await eventually("everything is closed", () => openFilesIn(daemon, directory.path).length === 0);
  });

  it("no descriptors are left", async () => {
    await using daemon = await startDaemon({ wrapper: ["prlimit", "--nofile=64:64"] });
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/old`, OLD);
    const held = Promise.withResolvers<void>();
    const others: Promise<unknown>[] = [];
    // Others take all that there are: a whole file has two of them while it arrives.
    for (let failed = false; !failed; ) {
      const other = write(clients, `${directory.path}/other`, Buffer.from("x"), {}, held.promise).catch(() => {
        failed = true;
      });
      others.push(other);
      const open = openFilesIn(daemon, directory.path).length;
      await eventually("it has begun or failed", () => failed || openFilesIn(daemon, directory.path).length > open);
    }
    const tree = readdirSync(directory.path);
    for (const name of ["old", "new/parents/file"]) {
      const path = `${directory.path}/${name}`;
      const failed = await failure(write(clients, path, BIG, more));
      expect(failed).toMatchObject({ code: Code.ResourceExhausted, reason: "EMFILE", path });
      expect(failed.message).toMatch(/too many open files/);
    }
    expect(readdirSync(directory.path)).toEqual(tree);
    held.resolve();
    await Promise.all(others);
    expect(readdirSync(directory.path)).toEqual(["old", "other"]);
    expect(readFileSync(`${directory.path}/old`, "utf8")).toBe(OLD);
    // And afterwards all is well.
    await write(clients, `${directory.path}/new/parents/file`, BIG, more);
  });
});

describe("a commit cannot be done when", () => {
  it("the disk is full for the copy over a file with other names", async () => {
    const mount = "size=3m";
    using directory = preparedDirectory({ mount, prepare: (path) => linkSync(`${path}/old`, `${path}/two`) });
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const path = `${directory.path}/old`;
    await write(clients, path, BIG, UPLOAD);
    const commit = () => clients.filesystem.commitUpload({ ...UPLOAD, size: BigInt(BIG.length) });
    expect(await failure(commit())).toMatchObject({ code: Code.ResourceExhausted, reason: "ENOSPC", path });
    execFileSync("mount", ["-o", "remount,size=8m", directory.path]);
    await commit();
    expect(readFileSync(`${directory.path}/two`).equals(BIG)).toBe(true);
    expect(readdirSync(directory.path)).toEqual(["old", "two"]);
  });

  it("the file system has become read-only", async () => {
    using directory = preparedDirectory({ mount: "size=3m" });
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const path = `${directory.path}/old`;
    await write(clients, path, Buffer.from("new"), UPLOAD);
    // The open nameless file would keep the kernel from it: a mount point of its own is read-only by itself.
    execFileSync("mount", ["--bind", directory.path, directory.path]);
    try {
      execFileSync("mount", ["-o", "remount,bind,ro", directory.path]);
      expect(await failure(clients.filesystem.commitUpload({ ...UPLOAD, size: 3n }))).toMatchObject({
        code: Code.PermissionDenied,
        reason: "EROFS",
        path,
      });
    } finally {
      execFileSync("umount", ["--lazy", directory.path]);
    }
    expect(readFileSync(path, "utf8")).toBe(OLD);
    await clients.filesystem.commitUpload({ ...UPLOAD, size: 3n });
    expect(readFileSync(path, "utf8")).toBe("new");
  });
});
