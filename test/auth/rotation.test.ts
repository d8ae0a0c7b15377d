import { chmodSync, mkdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { AS_NOBODY } from "../helpers/run-picod.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const rotated = (daemon: Daemon) => daemon.waitForLog(({ msg }) => msg === "access token rotated");
const failed = (daemon: Daemon) => daemon.waitForLog(({ msg }) => msg.startsWith("cannot read the rotated access token"));

async function lets(daemon: Daemon, token: string): Promise<boolean> {
  await using clients = connectTo(daemon.url, { token });
  try {
    await clients.process.execute({ argv: ["true"], cwd: "/" });
    return true;
  } catch (error) {
    expect(ConnectError.from(error).code).toBe(Code.Unauthenticated);
    return false;
  }
}

describe("a token file", () => {
  it("that is rewritten in place lets the new token in, and the old one for an overlap", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "old-token", { mode: 0o600 });
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: path } });
    expect(await lets(daemon, "new-token")).toBe(false);
    writeFileSync(path, "new-token");
    await rotated(daemon);
    expect([await lets(daemon, "new-token"), await lets(daemon, "old-token"), await lets(daemon, "other")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("that Kubernetes rotates by swapping a link is followed", async () => {
    using directory = temporaryDirectory();
    const root = directory.path;
    for (const version of ["v1", "v2"]) {
      mkdirSync(`${root}/..${version}`);
      writeFileSync(`${root}/..${version}/token`, `token-${version}`);
    }
    symlinkSync("..v1", `${root}/..data`);
    symlinkSync("..data/token", `${root}/token`);
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: `${root}/token` } });
    symlinkSync("..v2", `${root}/..data_tmp`);
    renameSync(`${root}/..data_tmp`, `${root}/..data`);
    await rotated(daemon);
    expect([await lets(daemon, "token-v2"), await lets(daemon, "token-v1")]).toEqual([true, true]);
  });

  it("that becomes empty leaves the present token in force and is logged", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "present-token", { mode: 0o600 });
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: path } });
    truncateSync(path);
    expect(await failed(daemon)).toMatchObject({
      level: "error",
      err: { message: `the access token from file ${path} is empty` },
    });
    expect([await lets(daemon, "present-token"), await lets(daemon, "")]).toEqual([true, false]);
  });

  it("whose directory is closed to the daemon leaves the present token in force and is logged", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, "present-token", { mode: 0o644 });
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: path }, wrapper: AS_NOBODY });
    chmodSync(directory.path, 0o700);
    expect(await failed(daemon)).toMatchObject({
      level: "error",
      err: { message: expect.stringContaining("permission denied") },
    });
    expect(await lets(daemon, "present-token")).toBe(true);
  });
});
