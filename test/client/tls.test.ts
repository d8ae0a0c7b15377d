import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../helpers/certificates.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { createClient } from "./built-client.js";

describe("the TypeScript client over TLS", () => {
  it("runs commands and moves files, trusting whom it is told to", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    const server = makeCertificate(path, "server", { names: "DNS:sandbox.internal" });
    await using daemon = await startDaemon({ args: ["--tls-cert", server.certPath, "--tls-key", server.keyPath] });
    const url = `https://127.0.0.1:${daemon.port}`;
    using client = createClient({ url, token: TOKEN, tls: { ca: server.cert, servername: "sandbox.internal" } });
    expect(await client.run("echo hello")).toMatchObject({ stdout: "hello\n" });
    mkdirSync(`${path}/tree/deep`, { recursive: true });
    writeFileSync(`${path}/tree/deep/file`, "x".repeat(100_000));
    await client.uploadDir(`${path}/tree`, `${path}/copy`);
    // Compares by digests, which go over plain HTTP.
    expect(await client.syncDir(`${path}/tree`, `${path}/copy`, { hash: true })).toMatchObject({ sent: [], unchanged: 2 });
    expect(readFileSync(`${path}/copy/deep/file`, "utf8")).toHaveLength(100_000);
    for (const tls of [undefined, {}, { ca: server.cert }]) {
      using stranger = createClient({ url, token: TOKEN, ...(tls === undefined ? {} : { tls }) });
      await expect(stranger.filesystem.stat({ path: "/" })).rejects.toThrow();
    }
  });

  it("is known by its certificate", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    const server = makeCertificate(path, "server", { names: "IP:127.0.0.1" });
    const own = makeCertificate(path, "agent");
    const callers = [{ name: "agent", certificate: "cn:agent", scopes: ["process"] }];
    writeFileSync(`${path}/scopes.json`, JSON.stringify({ callers }), { mode: 0o600 });
    const tls = ["--tls-cert", server.certPath, "--tls-key", server.keyPath, "--tls-client-ca", own.certPath];
    await using daemon = await startDaemon({ env: {}, args: [...tls, "--scopes-file", `${path}/scopes.json`] });
    const url = `https://127.0.0.1:${daemon.port}`;
    using client = createClient({ url, tls: { ca: server.cert, cert: Buffer.from(own.cert), key: Buffer.from(own.key) } });
    expect(await client.run(["echo", "hello"])).toMatchObject({ stdout: "hello\n" });
    await expect(client.readText("/etc/hostname")).rejects.toMatchObject({ code: Code.PermissionDenied });
    using stranger = createClient({ url, tls: { ca: server.cert } });
    await expect(stranger.run("true")).rejects.toMatchObject({ code: Code.Unauthenticated });
  });
});
