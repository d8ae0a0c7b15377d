import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { createProgram, type RemoteFlags } from "../../src/cli/program.js";
import { ACCESS_TOKEN, type RawFlags, SETTINGS } from "../../src/config.js";
import { runPicod } from "../helpers/run-picod.js";

interface Parsed {
  readonly command: "serve" | "healthcheck" | "mcp";
  readonly flags: RawFlags;
  readonly accessToken?: string | undefined;
  readonly remote?: RemoteFlags | undefined;
}

async function parse(...args: string[]): Promise<Parsed | undefined> {
  let parsed: Parsed | undefined;
  const program = createProgram({
    async serve(flags, accessToken) {
      parsed = { command: "serve", flags, accessToken };
    },
    async healthcheck(flags) {
      parsed = { command: "healthcheck", flags };
    },
    auditVerify: () => undefined,
    async mcp(flags, accessToken, remote) {
      parsed = { command: "mcp", flags, accessToken, remote };
    },
    version: () => undefined,
    licenses: () => undefined,
  });
  await program.parseAsync(args, { from: "user" });
  return parsed;
}

describe("createProgram", () => {
  it("hands over what was given, and nothing else", async () => {
    expect(await parse()).toEqual({ command: "serve", flags: {}, accessToken: undefined });
    expect(await parse("--port", "80", "--access-token=abc", "--log-level=debug")).toEqual({
      command: "serve",
      flags: { port: ["80"], logLevel: ["debug"] },
      accessToken: "abc",
    });
  });

  it.each(Object.entries(SETTINGS))("knows the flag of %s", async (name, { flag }) => {
    const [long = "", value] = flag.split(" ");
    const expected = value === undefined ? ["true"] : ["some-text"];
    expect((await parse(long, ...(value === undefined ? [] : ["some-text"])))?.flags).toEqual({ [name]: expected });
  });

  it("collects --env, also values that begin with a dash", async () => {
    expect((await parse("--env", "A=1", "--env=B=-2", "--env", "-C=3"))?.flags).toEqual({ env: ["A=1", "B=-2", "-C=3"] });
  });

  it("keeps an empty value", async () => {
    expect(await parse("--access-token", "", "--user=")).toMatchObject({ accessToken: "", flags: { user: [""] } });
  });

  it.each([
    ["behind the command", ["healthcheck", "--port", "80", "--host", "::1"]],
    ["before the command", ["--port", "80", "--host", "::1", "healthcheck"]],
  ])("takes the flags of healthcheck %s", async (_case, args) => {
    expect(await parse(...args)).toEqual({ command: "healthcheck", flags: { port: ["80"], host: ["::1"] } });
  });
});

describe("picod", () => {
  it("prints its version", async () => {
    expect(await runPicod(["--version"])).toEqual({ ended: 0, stdout: "0.1.0\n", stderr: "" });
  });

  it("tells in JSON what runs exactly", async () => {
    const { ended, stdout, stderr } = await runPicod(["--version", "--json"]);
    expect([ended, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toEqual({
      version: "0.1.0",
      commit: expect.toSatisfy((commit) => commit === null || /^[0-9a-f]{40}(-dirty)?$/.test(commit)),
      node: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      platform: "linux",
      arch: process.arch,
      libc: { name: "glibc", version: expect.stringMatching(/^2\.\d+$/) },
    });
  });

  it("prints the licences of what it is made of", async () => {
    const { ended, stdout } = await runPicod(["licenses"]);
    expect(ended).toBe(0);
    for (const part of ["Apache License", "@connectrpc/connect 2.2.0 (Apache-2.0)", "Copyright 2008 Google Inc.", "koffi"]) {
      expect(stdout).toContain(part);
    }
  });

  it.each(["--help", "-h"])("explains every flag with its variable, and shows examples, on %s", async (flag) => {
    const { ended, stdout, stderr } = await runPicod([flag]);
    expect([ended, stderr]).toEqual([0, ""]);
    for (const { flag: long, env } of [ACCESS_TOKEN, ...Object.values(SETTINGS)]) {
      expect(stdout).toContain(long);
      expect(stdout).toContain(`[${env}]`);
    }
    expect(stdout).toContain("Examples:\n  PICOD_ACCESS_TOKEN=");
    expect(stdout).toContain("healthcheck");
  });

  it.each([
    ["an unknown flag", ["--prot", "80"], "unknown option '--prot'"],
    ["a flag without its value", ["--port"], "option '--port <number>' argument missing"],
    ["a switch with a value", ["--insecure-no-auth=yes"], "--insecure-no-auth"],
    ["an unknown command", ["start"], "error: "],
    ["--json alone", ["--json"], "--json goes with --version"],
    ["an unknown flag of a command", ["healthcheck", "--access-tokn"], "unknown option '--access-tokn'"],
  ])("refuses %s with exit code 2 and a hint", async (_case, args, message) => {
    const { ended, stdout, stderr } = await runPicod(args, { env: { PICOD_ACCESS_TOKEN: "some-token" } });
    expect(stderr).toContain(message);
    expect(stderr).toContain("picod --help");
    expect([ended, stdout]).toEqual([2, ""]);
  });

  it("suggests the flag that was meant", async () => {
    expect((await runPicod(["--prot", "80"])).stderr).toContain("Did you mean --port?");
  });

  it.each([
    [
      "flag",
      ["--port", "http"],
      {},
      'picod: invalid value for --port (variable PICOD_PORT): "http" is not a whole number from 0 to 65535\n',
    ],
    [
      "variable",
      [],
      { PICOD_KILL_GRACE: "soon" },
      'picod: invalid value for PICOD_KILL_GRACE (flag --kill-grace): "soon" is not a duration such as 500ms, 10s, 5m or 1h (at most 24 days)\n',
    ],
  ])("refuses a bad value of a %s with exit code 2 and one line", async (_case, args, env, stderr) => {
    const result = await runPicod(args, { env: { PICOD_ACCESS_TOKEN: "some-token", ...env } });
    expect(result).toEqual({ ended: 2, stdout: "", stderr });
  });

  it.each([
    ["/proc", "/proc/self/stat", "mount -t proc proc /proc"],
    ["/dev/null", "/dev/null", "mknod -m 666 /dev/null c 1 3"],
  ])("names what is missing in a root without %s, and how to provide it", async (missing, file, remedy) => {
    // Empty directories in their place, for this program alone.
    const hidden = dirname(missing) === "/" ? missing : dirname(missing);
    const wrapper = ["unshare", "--mount", "sh", "-c", `mount -t tmpfs tmpfs ${hidden} && exec "$@"`, "sh"];
    const { ended, stdout, stderr } = await runPicod([], { env: { PICOD_ACCESS_TOKEN: "some-token" }, wrapper });
    expect(stderr).toMatch(new RegExp(`^picod: ${file}: no such file or directory: .*${remedy}\n$`));
    expect([ended, stdout]).toEqual([2, ""]);
  });
});
