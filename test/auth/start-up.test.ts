import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { AS_NOBODY, runPicod, withEtc } from "../helpers/run-picod.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { startMetadataServer } from "./metadata-server.js";

const TOKEN = "start-up-token-77";
const NOBODY = 65534;

/** Starts the daemon, and tells which source it says it has its token from after it has let that token in. */
async function sourceOf(options: Parameters<typeof startDaemon>[0], token = TOKEN): Promise<unknown> {
  await using daemon = await startDaemon(options);
  await using clients = connectTo(daemon.url, { token });
  expect(await clients.process.execute({ argv: ["true"] })).toMatchObject({ exitCode: 0 });
  return daemon.logs.find(({ msg }) => msg === "server listening")?.tokenSource;
}

/** The tree that becomes visible as /etc/picod/token. */
function etcWith(directory: string, token: string, mode = 0o600): string {
  mkdirSync(`${directory}/etc/picod`, { recursive: true });
  writeFileSync(`${directory}/etc/picod/token`, token, { mode });
  return `${directory}/etc`;
}

describe("the daemon takes its token from", () => {
  it("the flag", async () => {
    expect(await sourceOf({ args: ["--access-token", TOKEN], env: { PICOD_ACCESS_TOKEN: "another" } })).toBe("--access-token");
  });

  it("the flag written with an equals sign", async () => {
    expect(await sourceOf({ args: [`--access-token=${TOKEN}`], env: {} })).toBe("--access-token");
  });

  it("the variable", async () => {
    expect(await sourceOf({ env: { PICOD_ACCESS_TOKEN: TOKEN, PICOD_ACCESS_TOKEN_FILE: "/nonexistent" } })).toBe(
      "PICOD_ACCESS_TOKEN",
    );
  });

  it("the file that the variable names", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, `${TOKEN}\n`, { mode: 0o600 });
    expect(await sourceOf({ env: { PICOD_ACCESS_TOKEN_FILE: path } })).toBe(`file ${path}`);
  });

  it("the file that the flag names, rather than the variable's", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, TOKEN, { mode: 0o600 });
    expect(await sourceOf({ args: ["--access-token-file", path], env: { PICOD_ACCESS_TOKEN_FILE: "/nonexistent" } })).toBe(
      `file ${path}`,
    );
  });

  it("/etc/picod/token", async () => {
    using directory = temporaryDirectory();
    const env = { PICOD_METADATA_URL: "http://127.0.0.1:1/never-asked" };
    expect(await sourceOf({ wrapper: withEtc(etcWith(directory.path, TOKEN)), env })).toBe("file /etc/picod/token");
  });

  it("the metadata service", async () => {
    await using server = await startMetadataServer((_request, response) => response.end(TOKEN));
    expect(await sourceOf({ args: ["--metadata-url", `${server.url}/token`], env: {} })).toBe(
      `metadata service ${server.url}/token`,
    );
  });
});

describe("the daemon refuses to start", () => {
  it("without a token, naming all five sources and the way out", async () => {
    const { ended, stderr, stdout } = await runPicod(["--port", "0"]);
    expect(ended).toBe(2);
    expect(stdout).toBe("");
    for (const source of [
      "--access-token ",
      "PICOD_ACCESS_TOKEN\n",
      "PICOD_ACCESS_TOKEN_FILE",
      "/etc/picod/token",
      "--metadata-url",
      "--insecure-no-auth",
    ]) {
      expect(stderr).toContain(source);
    }
  });

  it.each([
    ["an empty flag", ["--access-token", ""], {}, "the access token from --access-token is empty"],
    ["an empty variable", [], { PICOD_ACCESS_TOKEN: "" }, "the access token from PICOD_ACCESS_TOKEN is empty"],
    [
      "a variable with white space inside",
      [],
      { PICOD_ACCESS_TOKEN: "a b" },
      "the access token from PICOD_ACCESS_TOKEN holds white space",
    ],
    [
      "a missing file",
      ["--access-token-file", "/nonexistent"],
      {},
      "cannot read the access token from file /nonexistent: no such file",
    ],
    [
      "an empty file name",
      [],
      { PICOD_ACCESS_TOKEN_FILE: "" },
      "invalid value for PICOD_ACCESS_TOKEN_FILE (flag --access-token-file)",
    ],
    ["a directory", ["--access-token-file", "/etc"], {}, "cannot read the access token from file /etc: it is not a regular file"],
  ])("with %s, even when another source has a token and everybody may come in", async (_case, args, env, message) => {
    using directory = temporaryDirectory();
    const wrapper = withEtc(etcWith(directory.path, "another-token"));
    const { ended, stderr } = await runPicod(["--port", "0", "--insecure-no-auth", ...args], { env, wrapper });
    expect(stderr).toContain(`picod: ${message}`);
    expect(ended).toBe(2);
  });

  it("with a FIFO that nobody writes, without waiting for one", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    execFileSync("mkfifo", [path]);
    const { ended, stderr } = await runPicod(["--access-token-file", path]);
    expect([ended, stderr]).toEqual([2, `picod: cannot read the access token from file ${path}: it is not a regular file\n`]);
  });

  it("with a file that its user may not read", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, TOKEN, { mode: 0o600 });
    const { ended, stderr } = await runPicod(["--access-token-file", path], { wrapper: AS_NOBODY });
    expect([ended, stderr]).toEqual([2, `picod: cannot read the access token from file ${path}: permission denied\n`]);
  });

  it("with a file in a directory that its user may not search", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/closed`, { mode: 0o700 });
    const path = `${directory.path}/closed/token`;
    writeFileSync(path, TOKEN, { mode: 0o644 });
    const { ended, stderr } = await runPicod(["--access-token-file", path], { wrapper: AS_NOBODY });
    expect([ended, stderr]).toEqual([2, `picod: cannot read the access token from file ${path}: permission denied\n`]);
  });

  it("with an /etc/picod that its user may not search, rather than to ask the metadata service", async () => {
    using directory = temporaryDirectory();
    await using server = await startMetadataServer((_request, response) => response.end("another-token"));
    const etc = etcWith(directory.path, TOKEN);
    chmodSync(`${etc}/picod`, 0o700);
    const wrapper = [...withEtc(etc), ...AS_NOBODY];
    const { ended, stderr } = await runPicod(["--metadata-url", server.url], { wrapper });
    expect([ended, stderr]).toEqual([2, "picod: cannot read the access token from file /etc/picod/token: permission denied\n"]);
    expect(server.requests).toHaveLength(0);
  });

  it("with a metadata service that says nothing, within seconds and naming it", async () => {
    await using server = await startMetadataServer(() => undefined);
    const startedAt = performance.now();
    const { ended, stderr } = await runPicod(["--metadata-url", `${server.url}/token`]);
    expect(performance.now() - startedAt).toBeLessThan(8_000);
    expect(stderr).toBe(
      `picod: cannot read the access token from metadata service ${server.url}/token: no answer to GET /token within 1000 ms\n`,
    );
    expect(ended).toBe(2);
  });
});

describe("the daemon warns", () => {
  it("when every user can read the token file, and starts", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, TOKEN);
    chmodSync(path, 0o644);
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: path } });
    expect(daemon.logs).toContainEqual(
      expect.objectContaining({ level: "warn", msg: expect.stringContaining(`${path} is readable by every user`) }),
    );
  });

  it("does not warn about a file that its own user alone can read", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/token`;
    writeFileSync(path, TOKEN, { mode: 0o400 });
    chownSync(path, NOBODY, NOBODY);
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN_FILE: path }, wrapper: AS_NOBODY });
    expect(daemon.logs.filter(({ level }) => level === "warn")).toEqual([]);
  });

  it("when it lets everybody in", async () => {
    await using daemon = await startDaemon({ args: ["--insecure-no-auth"], env: {} });
    expect(daemon.logs).toContainEqual(
      expect.objectContaining({ level: "warn", msg: expect.stringContaining("without an access token") }),
    );
    await using clients = connectTo(daemon.url, { token: null });
    expect(await clients.process.execute({ argv: ["true"] })).toMatchObject({ exitCode: 0 });
  });

  it("keeps asking for the token that it has, whatever --insecure-no-auth says", async () => {
    await using daemon = await startDaemon({ args: ["--insecure-no-auth"], env: { PICOD_ACCESS_TOKEN: TOKEN } });
    await using clients = connectTo(daemon.url, { token: null });
    await expect(clients.process.execute({ argv: ["true"] })).rejects.toThrow("[unauthenticated]");
  });
});
