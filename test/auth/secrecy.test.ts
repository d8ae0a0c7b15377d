import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Clients, connectTo, PROTOCOLS } from "../helpers/clients.js";
import { listeningPorts } from "../helpers/listening-ports.js";
import { AS_NOBODY } from "../helpers/run-picod.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

const TOKEN = "very-secret-0815-token";
const WRONG = "very-wrong-4711-token";

const WAYS: [string, { args?: string[]; env: Record<string, string> }][] = [
  ["the flag", { args: ["--access-token", TOKEN], env: {} }],
  ["the flag with an equals sign", { args: [`--access-token=${TOKEN}`], env: {} }],
  ["the variable", { env: { PICOD_ACCESS_TOKEN: TOKEN } }],
  [
    "flag and variable, and a copy in another one",
    { args: ["--access-token", TOKEN], env: { PICOD_ACCESS_TOKEN: TOKEN, COPY: TOKEN } },
  ],
  ["the variable with white space around it", { env: { PICOD_ACCESS_TOKEN: ` ${TOKEN}\n` } }],
];

async function output(clients: Clients, command: string): Promise<string> {
  const { stdout, stderr } = await clients.process.execute({ command });
  return stdout + stderr;
}

describe.each(WAYS)("a token that came by %s", (_way, given) => {
  it("is in neither environment nor command line of the daemon", async () => {
    await using daemon = await startDaemon(given);
    const shown = ["environ", "cmdline"].map((name) => readFileSync(`/proc/${daemon.pid}/${name}`, "latin1"));
    expect(shown.join("")).not.toContain(TOKEN);
    expect(shown[1]).toContain("picod");
  });

  it("is not to be had by a command that runs as root", async () => {
    await using daemon = await startDaemon(given);
    await using clients = connectTo(daemon.url, { token: TOKEN });
    const seen = await output(clients, "env; cat /proc/$PPID/environ /proc/$PPID/cmdline; cat /proc/self/environ");
    expect(seen).toContain("PATH=");
    expect(seen).not.toContain(TOKEN);
  });
});

describe("the daemon of an ordinary user", () => {
  it.each(["environ", "mem", "maps", "fd/1", "auxv"])("keeps its /proc/<pid>/%s from commands of the same user", async (name) => {
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN: TOKEN }, wrapper: AS_NOBODY });
    await using clients = connectTo(daemon.url, { token: TOKEN });
    const result = await clients.process.execute({ command: `id -u; head -c1 /proc/$PPID/${name}`, cwd: "/" });
    expect(result.stdout).toBe("65534\n");
    expect(result.stderr).toContain("Permission denied");
  });
});

async function callWith(daemon: Daemon, token: string | null): Promise<void> {
  for (const protocol of PROTOCOLS) {
    await using clients = connectTo(daemon.url, { protocol, token });
    await clients.process.execute({ argv: ["true"] }).catch(() => undefined);
    for await (const _ of clients.filesystem.readFile({ path: "/nonexistent" })) expect.unreachable();
  }
}

describe("the log", () => {
  it("has neither right nor wrong tokens, at any level", async () => {
    await using daemon = await startDaemon({ args: ["--log-level", "trace"], env: { PICOD_ACCESS_TOKEN: TOKEN } });
    for (const token of [TOKEN, WRONG, null]) await callWith(daemon, token).catch(() => undefined);
    const headers = { authorization: `Bearer ${WRONG}` };
    await fetch(`${daemon.url}/metrics`, { headers });
    await fetch(`${daemon.url}/no/such/path?access_token=${WRONG}`, { headers });
    await daemon.waitForLog((line) => line.procedure === "/no/such/path");
    expect(daemon.logs.length).toBeGreaterThan(PROTOCOLS.length);
    expect(JSON.stringify(daemon.logs)).not.toMatch(new RegExp(`${TOKEN}|${WRONG}`));
  });
});

describe("the daemon's Node", () => {
  it("opens no debugger on SIGUSR1 and stays alive", async () => {
    await using daemon = await startDaemon({ env: { PICOD_ACCESS_TOKEN: TOKEN } });
    daemon.child.kill("SIGUSR1");
    await using clients = connectTo(daemon.url, { token: TOKEN });
    expect(await clients.process.execute({ argv: ["true"] })).toMatchObject({ exitCode: 0 });
    expect(listeningPorts(daemon.pid)).toEqual([daemon.port]);
  });

  it("takes no options and no code from the image's variables", async () => {
    const code = "data:text/javascript,process.exit(42)";
    const env = {
      PICOD_ACCESS_TOKEN: TOKEN,
      NODE_OPTIONS: `--no-such-option --import=${code}`,
      NODE_V8_COVERAGE: "/nonexistent/coverage",
      NODE_EXTRA_CA_CERTS: "/nonexistent/certificates",
      OPENSSL_CONF: "/nonexistent/openssl.cnf",
    };
    await using daemon = await startDaemon({ env });
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  });
});
