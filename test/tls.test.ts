import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { dirname } from "node:path";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "./helpers/certificates.js";
import { connectTo } from "./helpers/clients.js";
import { example } from "./helpers/example.js";
import { PICOD, startDaemon } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";

/** That nobody listens on now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("the documentation", () => {
  it("of TLS starts a daemon that curl and the health check reach", async () => {
    using directory = temporaryDirectory();
    const port = await freePort();
    const script = example("README.md", "tls").replaceAll("49983", String(port));
    const env = { PATH: `${dirname(PICOD)}:${process.env.PATH}` };
    const shown = execFileSync("sh", ["-ec", `${script.replace("&\n", ">/dev/null &\n")} wait`], {
      cwd: directory.path,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    expect(shown).toBe(readFileSync("/etc/hostname", "utf8"));
  });

  it("of client certificates makes one that is known", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    execFileSync("sh", ["-ec", example("docs/authorization.md", "client-certificate")], { cwd: path, stdio: "pipe" });
    const server = makeCertificate(path, "server", { names: "IP:127.0.0.1" });
    const tls = ["--tls-cert", server.certPath, "--tls-key", server.keyPath, "--tls-client-ca", `${path}/client-ca.pem`];
    await using daemon = await startDaemon({ env: {}, args: [...tls, "--scopes-file", `${path}/scopes.json`] });
    const [cert, key] = ["gateway.pem", "gateway.key"].map((name) => readFileSync(`${path}/${name}`, "utf8"));
    const options = { tls: { ca: server.cert, cert: cert ?? "", key: key ?? "" }, token: null };
    await using clients = connectTo(`https://127.0.0.1:${daemon.port}`, options);
    await expect(clients.process.execute({ argv: ["true"] })).resolves.toMatchObject({ exitCode: 0 });
    await expect(clients.filesystem.stat({ path: "/" })).rejects.toMatchObject({ code: Code.PermissionDenied });
  });
});
