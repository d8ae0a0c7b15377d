import { execFile, spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { PYTHON_CLIENT_MS, runPythonClient } from "./python-client.js";

const TRUSTED = ["--also-listen", "127.0.0.1:0,no-auth"];

/** Files and commands within the root, on two addresses that ask for no token. */
async function withTrusted(root: string, use: (addresses: string[], daemon: Daemon) => Promise<void>): Promise<void> {
  await using daemon = await startDaemon({ args: ["--root", root, ...TRUSTED, ...TRUSTED] });
  const { alsoListening } = await daemon.waitForLog(({ msg }) => msg === "server listening");
  await use(alsoListening as string[], daemon);
}

describe("agent-sandbox's Python clients", () => {
  it("work with every method, on two trusted addresses", { timeout: PYTHON_CLIENT_MS }, async () => {
    using directory = temporaryDirectory();
    const root = realpathSync(directory.path);
    await withTrusted(root, async (addresses, { url }) => {
      const ports = addresses.map((address) => address.split(":").at(-1) ?? "");
      await runPythonClient("agent_sandbox_client.py", ...ports, root);
      // Everybody else still needs the token.
      expect((await fetch(`${url}/v1/files/`)).status).toBe(401);
    });
  });
});

const GO_TESTS = join(import.meta.dirname, "agent-sandbox-go");
/** The public database of checksums does not have the module: go.sum verifies it. No other toolchain is fetched. */
const GO = { ...process.env, CGO_ENABLED: "0", GOTOOLCHAIN: "local", GONOSUMDB: "sigs.k8s.io/agent-sandbox" };
/** What is built once and hardly runs is not optimized: the first time it takes half a minute instead of a whole one. */
const QUICKLY = ["-vet=off", "-gcflags=all=-N -l", "-ldflags=-s -w"];
/** False also for one that is older than go.mod asks for. */
const hasGo = spawnSync("go", ["list", "-m"], { cwd: GO_TESTS, env: GO }).status === 0;
const notRun = hasGo ? "" : ": no Go toolchain: not run";
if (!hasGo) process.stdout.write(`agent-sandbox's Go client${notRun}\n`);

describe(`agent-sandbox's Go client${notRun}`, () => {
  it.runIf(hasGo)("works with every call, on two trusted addresses", { timeout: 600_000 }, async () => {
    using directory = temporaryDirectory();
    const root = realpathSync(directory.path);
    await withTrusted(root, async ([REST, GRPC]) => {
      const env = { ...GO, REST, GRPC, ROOT: root };
      const tested = promisify(execFile)("go", ["test", "-count=1", ...QUICKLY, "."], { cwd: GO_TESTS, env });
      const { stdout } = await tested.catch(({ stdout, stderr }) => Promise.reject(new Error(`${stdout}${stderr}`)));
      expect(stdout).toMatch(/^ok/);
    });
  });
});
