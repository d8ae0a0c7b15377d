import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { readTokenFile, watchTokenFile } from "../../src/auth/token-file.js";
import { eventually } from "../helpers/eventually.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const INTERVAL_MS = 20;

describe("readTokenFile", () => {
  it("reads a token without its trailing newline", () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "the-token\n", { mode: 0o600 });
    expect(readTokenFile(path)).toMatchObject({ token: "the-token", worldReadable: false });
  });

  it("notices that others may read it", () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "the-token");
    chmodSync(path, 0o644);
    expect(readTokenFile(path).worldReadable).toBe(true);
  });

  it("follows symbolic links", () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/real`, "the-token");
    symlinkSync("real", `${directory.path}/token`);
    expect(readTokenFile(`${directory.path}/token`).token).toBe("the-token");
  });

  it.each<[string, (path: string) => void, string]>([
    ["is missing", () => undefined, "no such file or directory"],
    ["is empty", (path) => writeFileSync(path, ""), "is empty"],
    ["holds a newline alone", (path) => writeFileSync(path, "\n"), "is empty"],
    ["holds white space inside", (path) => writeFileSync(path, "two words"), "holds white space"],
    ["is a directory", (path) => mkdirSync(path), "it is not a regular file"],
    ["is a FIFO that nobody writes", (path) => void execFileSync("mkfifo", [path]), "it is not a regular file"],
    ["is a device", (path) => symlinkSync("/dev/zero", path), "it is not a regular file"],
    ["is a dangling link", (path) => symlinkSync("nowhere", path), "no such file or directory"],
    ["is a link to itself", (path) => symlinkSync("token", path), "too many symbolic links"],
    ["cannot be read", (path) => symlinkSync("/proc/self/mem", path), "i/o error"],
    ["is too large", (path) => writeFileSync(path, "x".repeat(70_000)), "is larger than 65536 bytes"],
  ])("refuses a file that %s, naming it", (_case, prepare, why) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    prepare(path);
    expect(() => readTokenFile(path)).toThrow(`access token from file ${path}`);
    expect(() => readTokenFile(path)).toThrow(why);
  });
});

describe("watchTokenFile", () => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  function watch(path: string) {
    const seen: string[] = [];
    const { version } = readTokenFile(path);
    const onError = (error: unknown) => void seen.push(`error: ${(error as Error).message}`);
    stops.push(watchTokenFile(path, version, INTERVAL_MS, { onToken: (token) => seen.push(token), onError }));
    return seen;
  }

  it("sees a file that is rewritten in place", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "one");
    const seen = watch(path);
    writeFileSync(path, "two");
    await eventually("the new token", () => seen.length > 0);
    expect(seen).toEqual(["two"]);
  });

  it("sees a change between the first reading and the first look", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "one");
    const { version } = readTokenFile(path);
    writeFileSync(path, "two");
    const seen: string[] = [];
    stops.push(
      watchTokenFile(path, version, INTERVAL_MS, { onToken: (token) => seen.push(token), onError: () => seen.push("error") }),
    );
    await eventually("the new token", () => seen.length > 0);
    expect(seen).toEqual(["two"]);
  });

  it("sees a secret that Kubernetes rotates by swapping a link", async () => {
    using directory = temporaryDirectory();
    const root = directory.path;
    for (const version of ["v1", "v2"]) {
      mkdirSync(`${root}/..${version}`);
      writeFileSync(`${root}/..${version}/token`, `token-${version}`);
    }
    symlinkSync("..v1", `${root}/..data`);
    symlinkSync("..data/token", `${root}/token`);
    const seen = watch(`${root}/token`);
    symlinkSync("..v2", `${root}/..data_tmp`);
    renameSync(`${root}/..data_tmp`, `${root}/..data`);
    rmSync(`${root}/..v1`, { recursive: true });
    await eventually("the new token", () => seen.length > 0);
    expect(seen).toEqual(["token-v2"]);
  });

  it("reports a file that becomes empty or goes away, each once, and recovers", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "one");
    const seen = watch(path);
    truncateSync(path);
    await eventually("the empty file", () => seen.length === 1);
    rmSync(path);
    await eventually("the missing file", () => seen.length === 2);
    writeFileSync(path, "two");
    await eventually("the new token", () => seen.length === 3);
    expect(seen).toEqual([
      `error: the access token from file ${path} is empty`,
      `error: cannot read the access token from file ${path}: no such file or directory`,
      "two",
    ]);
  });
});
