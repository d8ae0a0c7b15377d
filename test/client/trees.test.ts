import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { leadsInside } from "../../src/client/trees/link-inside.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { createClient } from "./built-client.js";
import { SwitchedProxy } from "./switched-proxy.js";

function makeTree(root: string): void {
  mkdirSync(`${root}/sub/deeper`, { recursive: true });
  writeFileSync(`${root}/a`, "content of a", { mode: 0o640 });
  writeFileSync(`${root}/sub/deeper/big`, Buffer.alloc(3_000_000, "0123456789"));
  writeFileSync(`${root}/sub/sparse`, "x");
  truncateSync(`${root}/sub/sparse`, 50_000_000);
  symlinkSync("../a", `${root}/sub/link`);
  linkSync(`${root}/a`, `${root}/b`);
  writeFileSync(`${root}/${"n".repeat(120)}-ü`, "");
  execFileSync("sh", ["-c", `printf raw > "$1/$(printf 'raw\\377')"`, "sh", root]);
  utimesSync(`${root}/a`, 1_000_000.5, 1_000_000.5);
  chmodSync(`${root}/sub`, 0o750);
}

/** Types, modes, sizes, times and contents. */
const described = (root: string) =>
  execFileSync(
    "sh",
    [
      "-c",
      "cd $1 && find . -printf '%P %y %m %s %l %Ts\\n' | grep -av '^ ' | sort; find . -type f -exec sha256sum {} + | sort -k2",
      "sh",
      root,
    ],
    { encoding: "latin1" },
  );
const withoutDirectories = (text: string) => text.replaceAll(/^.* d .*\n/gm, "");

describe("uploadDir and downloadDir", () => {
  it("carry a tree there and back", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far, back] = ["near", "far", "back"].map((name) => `${directory.path}/${name}`) as [string, string, string];
    makeTree(near);
    expect(await client.uploadDir(near, far, { atomic: true })).toMatchObject({ entries: 9n });
    expect(withoutDirectories(described(far))).toBe(withoutDirectories(described(near)));
    expect(statSync(`${far}/a`).ino).toBe(statSync(`${far}/b`).ino);
    const told: number[] = [];
    const { summary, skipped } = await client.downloadDir(far, back, { onProgress: ({ bytes }) => told.push(bytes) });
    expect(described(back)).toBe(described(far));
    expect(statSync(`${back}/a`).ino).toBe(statSync(`${back}/b`).ino);
    expect(skipped).toEqual([]);
    // Node sets times to some hundreds of nanoseconds.
    expect(lstatSync(`${back}/sub/link`).mtimeMs).toBeCloseTo(lstatSync(`${far}/sub/link`).mtimeMs, 2);
    expect(statSync(`${back}/sub/sparse`).blocks).toBe(statSync(`${far}/sub/sparse`).blocks);
    expect(told.at(-1)).toBe(Number(summary.archiveBytes));
    expect(readdirSync(directory.path)).toEqual(["back", "far", "near"]);
  });

  it("merge, and go through no link, neither of the archive nor of the destination", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far, outside] = ["near", "far", "outside"].map((name) => `${directory.path}/${name}`) as [
      string,
      string,
      string,
    ];
    for (const path of [near, far, outside, `${far}/sub`]) mkdirSync(path);
    writeFileSync(`${far}/sub/file`, "new");
    symlinkSync("/etc/passwd", `${far}/absolute`);
    symlinkSync("../outside", `${far}/above`);
    symlinkSync("sub/file", `${far}/fine`);
    writeFileSync(`${near}/kept`, "kept");
    symlinkSync(outside, `${near}/sub`);
    const { skipped } = await client.downloadDir(far, near);
    expect(skipped).toEqual(["above", "absolute"].toSorted());
    expect(readdirSync(near)).toEqual(["fine", "kept", "sub"]);
    expect(lstatSync(`${near}/sub`).isDirectory()).toBe(true);
    expect(readdirSync(outside)).toEqual([]);
    expect(readlinkSync(`${near}/fine`)).toBe("sub/file");
  });

  it("begin anew when the connection is cut, and leave nothing when they are cancelled", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far] = [`${directory.path}/near`, `${directory.path}/far`];
    mkdirSync(near);
    writeFileSync(`${near}/big`, Buffer.alloc(20_000_000, "abc"));
    const once =
      (call: () => void) =>
      ({ bytes }: { bytes: number }) => {
        if (bytes < 10_000_000 || proxy.cuts > 0) return;
        call();
      };
    await client.uploadDir(near, far, { atomic: true, onProgress: once(() => proxy.cut()) });
    expect(proxy.cuts).toBe(1);
    expect(readFileSync(`${far}/big`).equals(readFileSync(`${near}/big`))).toBe(true);
    rmSync(near, { recursive: true });
    proxy.cuts = 0;
    await client.downloadDir(far, near, { onProgress: once(() => proxy.cut()) });
    expect(readFileSync(`${far}/big`).equals(readFileSync(`${near}/big`))).toBe(true);
    proxy.cuts = 0;
    const leave = new AbortController();
    const cancelled = client.downloadDir(far, `${directory.path}/no`, {
      signal: leave.signal,
      onProgress: once(() => leave.abort()),
    });
    await expect(cancelled).rejects.toMatchObject({ code: Code.Canceled });
    expect(readdirSync(directory.path)).toEqual(["far", "near"]);
  });

  it.each([
    ["a/b", "../c", true],
    ["a/b", "../../c", false],
    ["a", "..", false],
    ["a", "b/../../c", false],
    ["a", "/etc", false],
    ["a/b/c", "../..", true],
    // Through a link that leads up, `..` is not where it seems to be.
    ["m", "a/b/c/..", false],
  ])("know where a link at %s to %s leads", (path, target, expected) => {
    expect(leadsInside(path.split("/"), target)).toBe(expected);
  });
});

describe("syncDir", () => {
  it("sends what differs, and removes what is not there, but not what is ignored", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far] = [`${directory.path}/near`, `${directory.path}/far`];
    makeTree(near);
    mkdirSync(`${near}/logs`);
    writeFileSync(`${near}/.gitignore`, "*.log\n");
    writeFileSync(`${near}/logs/.picodignore`, "secret\n");
    writeFileSync(`${near}/logs/secret`, "");
    writeFileSync(`${near}/x.log`, "");
    const first = await client.syncDir(near, far);
    expect(first.sent).not.toContain("x.log");
    expect(first.sent).not.toContain("logs/secret");
    expect(first.sent).toContain("sub/deeper/big");
    expect(await client.syncDir(near, far)).toMatchObject({ sent: [], removed: [], unchanged: first.sent.length });

    writeFileSync(`${near}/sub/deeper/big`, "short");
    writeFileSync(`${near}/sub/new`, "new");
    rmSync(`${near}/sub/link`);
    mkdirSync(`${far}/gone/kept`, { recursive: true });
    mkdirSync(`${far}/gone/below`);
    writeFileSync(`${far}/gone/kept/y.log`, "");
    writeFileSync(`${far}/gone/below/file`, "");
    expect((await client.syncDir(near, far)).sent).toEqual(["sub/deeper/big", "sub/new"]);
    const synced = await client.syncDir(near, far, { delete: true });
    expect(synced).toMatchObject({ sent: [], removed: ["gone/below", "sub/link"] });
    expect(readdirSync(`${far}/gone`)).toEqual(["kept"]);

    writeFileSync(`${far}/sub/new`, "NEW");
    const { mtime } = statSync(`${near}/sub/new`);
    utimesSync(`${near}/sub/new`, mtime, mtime);
    utimesSync(`${far}/sub/new`, mtime, mtime);
    utimesSync(`${near}/a`, 5, 5);
    expect((await client.syncDir(near, far, { hash: true })).sent).toEqual(["sub/new"]);
    expect(readFileSync(`${far}/sub/new`, "utf8")).toBe("new");
  });

  it("goes on with what is left when the connection was cut or the daemon restarted", async () => {
    const first = await startDaemon();
    using proxy = await SwitchedProxy.to(first.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [near, far] = [`${directory.path}/near`, `${directory.path}/far`];
    mkdirSync(near);
    for (let index = 10; index < 30; index++) writeFileSync(`${near}/${index}`, Buffer.alloc(1_000_000, index));
    let second: Promise<Daemon> | undefined;
    const onProgress = ({ bytes }: { bytes: number }) => {
      if (bytes < 8_000_000 || second !== undefined) return;
      second = first.stop("SIGKILL").then(() => startDaemon({ args: ["--port", String(first.port)] }));
    };
    const { sent, unchanged } = await client.syncDir(near, far, { onProgress });
    await using _ = (await second) as Daemon;
    expect([sent.length, unchanged]).toEqual([20, 0]);
    // Far less than all of it twice.
    expect(proxy.sent).toBeLessThan(34_000_000);
    expect(described(far)).toBe(described(near));
  });
});
