import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Process } from "../../src/gen/envd/process/process_pb.js";
import { type Confined, startConfined } from "../helpers/confined.js";
import { unlimitedWithin } from "../helpers/policy-text.js";
import { TOKEN } from "../helpers/start-daemon.js";
import { askAs } from "../helpers/with-token.js";
import { connectMcp } from "../mcp/connect.js";

/** Without an entry in /etc/passwd: its home is `/`. */
const WITHOUT_HOME = "54321";

const policyOf = () => `
daemon_token = "acting"
${unlimitedWithin("homely", "~/**")}
[capabilities.acting.permissions]
users = ["nobody", "bin", "${WITHOUT_HOME}"]
${unlimitedWithin("acting", "~/**")}`;

let confined: Confined;
beforeAll(async () => {
  confined = await startConfined(policyOf, { env: { PICOD_ACCESS_TOKEN: TOKEN, PATH: "/usr/bin:/bin" } }, ["homely", "acting"]);
});
afterAll(() => confined[Symbol.asyncDispose]());

/** What is told of a file that only a wrong `~` would grant, or of the user of a command, by every way that names a user. */
const WAYS: Readonly<Record<string, (token: string, user: string) => Promise<string>>> = {
  Stat: (token, user) => told(confined.clients(token).filesystem.stat({ path: "/etc/hostname", user })),
  Execute: (token, user) => told(confined.clients(token).process.execute({ command: "cat /etc/hostname; id -u", user })),
  Start: (token, user) =>
    told(confined.clients(token).process.start({ command: "cat /etc/hostname; id -u", user })[Symbol.asyncIterator]().next()),
  "a route of files": async (token, user) =>
    (await askAs(confined.daemon, token, `/v1/files/%2Fetc/hostname?user=${user}`, undefined, "GET")).body,
  "a route of processes": async (token, user) =>
    (await askAs(confined.daemon, token, "/v1/processes", { command: "cat /etc/hostname", user })).body,
  "E2B's Stat": async (token, user) => {
    const headers = { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`, "x-access-token": token };
    const path = "/etc/hostname";
    return (await askAs(confined.daemon, token, "/filesystem.Filesystem/Stat", { path }, "POST", headers)).body;
  },
  "E2B's files": async (token, user) =>
    (await askAs(confined.daemon, token, `/files?path=/etc/hostname&username=${user}`, undefined, "GET")).body,
};

async function told(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each)),
    (error: Error) => error.message,
  );
}

describe("the user that a request names", () => {
  it.each(Object.entries(WAYS))(
    "is nobody but the default one through %s, where the capability names none",
    async (_way, ask) => {
      for (const user of ["nobody", "bin", "sys"]) {
        expect(await ask("homely", user), user).toMatch(
          new RegExp(`capability homely: .*${user}.*: it may not act as that user`),
        );
      }
    },
  );

  it("is not told whether it is there", async () => {
    for (const name of [WITHOUT_HOME, "1", "never-heard-of"]) {
      const { reason, metadata } = await confined.execute("homely", { argv: ["id", "-u"], user: name });
      expect([reason, metadata]).toEqual(["POLICY_DENIED", { capability: "homely", permission: "users", subject: `"${name}"` }]);
    }
  });

  it("is the default one by its name and its number, and one that the capability names", async () => {
    for (const [token, user, uid] of [
      ["homely", "", "0"],
      ["homely", "root", "0"],
      ["homely", "0", "0"],
      ["acting", "nobody", "65534"],
      ["acting", "65534", "65534"],
    ] as const) {
      expect(await confined.execute(token, { argv: ["id", "-u"], user })).toMatchObject({ output: `${uid}\n`, exitCode: 0 });
    }
    const { reason, metadata } = await confined.execute("acting", { argv: ["id", "-u"], user: "sys" });
    expect([reason, metadata]).toEqual(["POLICY_DENIED", { capability: "acting", permission: "users", subject: '"sys"' }]);
  });

  it("is not chosen by /init", async () => {
    const start = (token: string) => {
      const client = createClient(Process, confined.clients(token).transport);
      return told(
        client
          .start({ process: { cmd: "id", args: ["-u"] } })
          [Symbol.asyncIterator]()
          .next(),
      );
    };
    expect((await askAs(confined.daemon, TOKEN, "/init", { defaultUser: "bin" })).status).toBe(204);
    expect(await start("homely")).toMatch(/bin.*: it may not act as that user/);
    const { body } = await askAs(confined.daemon, "acting", "/files?path=/bin/sh", undefined, "GET");
    expect(body).toMatch(/may not read/);
    expect((await askAs(confined.daemon, TOKEN, "/init", { defaultUser: "root" })).status).toBe(204);
    expect(await start("homely")).toMatch(/"pid"/);
  });

  it("is nobody for tools of MCP, which act as the default one", async () => {
    await using mcp = await connectMcp(confined.daemon, { token: "homely" });
    await expect(mcp.call("sandbox_exec", { command: "id -u" })).resolves.toMatchObject({ stdout: "0\n" });
  });
});

describe("~ of a policy", () => {
  it("grants nothing to a user whose home is the root", async () => {
    const { filesystem, process } = confined.clients("acting");
    const user = WITHOUT_HOME;
    await expect(filesystem.stat({ path: "/etc/hostname", user })).rejects.toThrow("may not read");
    await expect(filesystem.makeDirectory({ path: "/tmp/never-made", user })).rejects.toThrow(/may not (read|write)/);
    const { stdout, stderr } = await process.execute({ command: "cat /etc/shells; echo $HOME", user });
    expect([stdout, stderr]).toEqual(["/\n", expect.stringContaining("Permission denied")]);
  });

  it("is never the home of whom E2B's clients name for paths alone", async () => {
    const read = async (path: string) =>
      (await askAs(confined.daemon, "acting", `/files?path=${path}&username=bin`, undefined, "GET")).body;
    for (const path of ["/bin/sh", "/usr/bin/env", "sh"]) expect(await read(path)).toMatch(/may not read/);
  });
});
