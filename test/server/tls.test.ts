import { once } from "node:events";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect as connectHttp2, constants } from "node:http2";
import { type RequestOptions, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { subjectAltNames } from "../../src/auth/client-certificates.js";
import { readTlsMaterial, type TlsFiles } from "../../src/server/tls.js";
import { type Certificate, type CertificateOptions, makeCertificate, makeRevocationList } from "../helpers/certificates.js";
import { connectTo, PROTOCOLS } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { runPicod } from "../helpers/run-picod.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { exchange } from "../rpc/support/http1.js";
import { followToEnd, selectId, startAndLeave } from "../rpc/support/processes.js";

const directory = mkdtempSync(join(tmpdir(), "picod-tls-"));
afterAll(() => rmSync(directory, { recursive: true }));
const make = (name: string, options?: CertificateOptions) => makeCertificate(directory, name, options);

const NAMES = "DNS:localhost,IP:127.0.0.1";
const authority = make("authority");
const server = make("server", { issuer: authority, names: NAMES, usage: "serverAuth" });
const renewed = make("renewed", { issuer: authority, names: NAMES, usage: "serverAuth" });
const clientAuthority = make("client-authority");
const client = (name: string, options: CertificateOptions = {}) =>
  make(name, { issuer: clientAuthority, usage: "clientAuth", ...options });
const gateway = client("gateway", { names: "URI:spiffe://cluster/gateway,DNS:gateway.internal" });

const CA = { ca: authority.cert };
const shown = ({ cert, key }: Certificate) => ({ ...CA, cert, key });
const flagsOf = ({ certPath, keyPath }: Certificate) => ["--tls-cert", certPath, "--tls-key", keyPath];
const startTls = (...args: string[]) => startDaemon({ args: [...flagsOf(server), ...args] });
const urlOf = ({ port }: Daemon) => `https://127.0.0.1:${port}`;

/** One request of HTTP/1.1 on a connection of its own. */
async function ask({ port }: Daemon, path: string, options: RequestOptions = {}) {
  const asked = request({ host: "127.0.0.1", port, path, agent: false, ...CA, ...options });
  asked.end();
  const [answer] = await once(asked, "response");
  return { status: answer.statusCode as number, body: await text(answer) };
}

async function handshake({ port }: Daemon, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({ host: "127.0.0.1", port, ...CA, ...options });
  await once(socket, "secureConnect");
  return socket.on("error", () => undefined);
}

const fingerprint = async (daemon: Daemon) => {
  const socket = await handshake(daemon);
  const shown = socket.getPeerX509Certificate()?.fingerprint256;
  socket.destroy();
  return shown;
};
describe("a port with TLS", () => {
  it.each(PROTOCOLS)("speaks %s", async (protocol) => {
    await using daemon = await startTls();
    await using clients = connectTo(urlOf(daemon), { protocol, tls: CA });
    await expect(clients.process.execute({ command: "echo hello" })).resolves.toMatchObject({ stdout: "hello\n" });
    const content = Buffer.alloc(3 * 1024 * 1024, "x");
    async function* upload() {
      yield { request: { case: "metadata" as const, value: { path: `${directory}/upload` } } };
      for (let at = 0; at < content.length; at += 1024 * 1024)
        yield { request: { case: "chunk" as const, value: content.subarray(at, at + 1024 * 1024) } };
    }
    const { bytesWritten } = await clients.filesystem.writeFile(upload());
    expect(bytesWritten).toBe(BigInt(content.length));
    let read = 0;
    for await (const { response } of clients.filesystem.readFile({ path: `${directory}/upload` })) {
      if (response.case === "chunk") read += response.value.length;
    }
    expect(read).toBe(content.length);
    await using stranger = connectTo(urlOf(daemon), { protocol, tls: CA, token: null });
    await expect(stranger.filesystem.stat({ path: "/" })).rejects.toMatchObject({ code: Code.Unauthenticated });
  });

  it("lets client and server agree on a protocol, from TLS 1.2 on", async () => {
    await using daemon = await startTls();
    for (const [offered, agreed] of [
      [["h2", "http/1.1"], "h2"],
      [["http/1.1", "h2"], "h2"],
      [["http/1.1"], "http/1.1"],
      [[], false],
    ] as const) {
      const socket = await handshake(daemon, { ALPNProtocols: [...offered] });
      expect([socket.alpnProtocol, socket.getProtocol()]).toEqual([agreed, "TLSv1.3"]);
      socket.destroy();
    }
    const old = await handshake(daemon, { maxVersion: "TLSv1.2" });
    expect(old.getProtocol()).toBe("TLSv1.2");
    old.destroy();
    const versions = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(handshake(daemon, versions)).rejects.toThrow(/protocol version|unsupported/i);
    await expect(handshake(daemon, { ALPNProtocols: ["spdy/1"] })).rejects.toThrow();
  });

  it("serves plain HTTP, WebSockets and E2B's routes", async () => {
    await using daemon = await startTls();
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect(await ask(daemon, "/healthz")).toMatchObject({ status: 200 });
    expect((await ask(daemon, "/v1/files//etc/hostname", { headers })).status).toBe(200);
    expect((await ask(daemon, "/files?path=/etc/hostname", { headers })).status).toBe(200);
    expect((await ask(daemon, "/v1/files//etc/hostname")).status).toBe(401);
    await using clients = connectTo(urlOf(daemon), { tls: CA });
    const id = await startAndLeave(clients, { command: "cat; echo done", stdin: true });
    const socket = new WebSocket(`wss://127.0.0.1:${daemon.port}/v1/processes/${id}/connect`, { headers, ...CA });
    let written = "";
    socket.on("message", (data, isBinary) => {
      if (isBinary) written += String(data);
    });
    await once(socket, "open");
    socket.send(Buffer.from("hello\n"));
    await eventually("it comes back", () => written === "hello\n");
    socket.send('{"type":"close_input"}');
    await once(socket, "close");
    expect(written).toBe("hello\ndone\n");
  });

  it("tells who speaks cleartext to use https", async () => {
    await using daemon = await startTls();
    const answer = await exchange(daemon, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\r\n\r\nthis port speaks TLS: use https\n$/);
    // Also to who is still busy with a body, and to nonsense.
    const body = `POST /v1/files/x HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n${"x".repeat(100_000)}`;
    expect(await exchange(daemon, body)).toContain("use https");
    expect(await exchange(daemon, "\0nonsense")).toContain("use https");
    const session = connectHttp2(`http://127.0.0.1:${daemon.port}`).on("error", () => undefined);
    const [code, lastStream, why] = await once(session, "goaway");
    expect([code, lastStream, String(why)]).toEqual([
      constants.NGHTTP2_INADEQUATE_SECURITY,
      0,
      "this port speaks TLS: use https",
    ]);
    session.destroy();
    await using clients = connectTo(daemon.url);
    await expect(clients.filesystem.stat({ path: "/" })).rejects.toThrow();
    expect(await ask(daemon, "/healthz")).toMatchObject({ status: 200 });
  });

  it("outlives handshakes that break", async () => {
    await using daemon = await startTls("--log-level", "debug");
    const descriptors = daemon.descriptors();
    const socket = connectTcp(daemon.port, "127.0.0.1").on("error", () => undefined);
    socket.write(Buffer.from([0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]));
    await once(socket.resume(), "close");
    const cut = connectTcp(daemon.port, "127.0.0.1").on("error", () => undefined);
    cut.write(Buffer.from([0x16]), () => cut.resetAndDestroy());
    await expect(handshake(daemon, { ca: clientAuthority.cert })).rejects.toThrow();
    await daemon.waitForLog(({ msg }) => msg === "TLS handshake failed");
    expect((await ask(daemon, "/healthz")).status).toBe(200);
    await eventually("nothing is left of them", () => daemon.descriptors() <= descriptors);
  });

  it("is healthy for picod healthcheck", async () => {
    await using daemon = await startTls();
    const port = String(daemon.port);
    expect(await runPicod(["healthcheck", "--port", port], { env: { PICOD_TLS_CERT: server.certPath } })).toMatchObject({
      ended: 0,
    });
    expect(await runPicod(["healthcheck", "--port", port, "--tls-cert", server.certPath])).toMatchObject({ ended: 0 });
    const { ended, stderr } = await runPicod(["healthcheck", "--port", port]);
    expect([ended, stderr]).toEqual([1, `picod: healthcheck of 127.0.0.1 port ${port}: /healthz answered 400\n`]);
  });

  it("has it on further addresses, too, but those that say otherwise", async () => {
    await using daemon = await startTls("--also-listen", "127.0.0.1:0", "--also-listen", "127.0.0.1:0,no-tls,no-auth");
    const line = await daemon.waitForLog(({ msg }) => msg === "server listening");
    const [guarded = "", clear = ""] = line.alsoListening as string[];
    expect(line.tls).toBe(true);
    expect((await fetch(`http://${guarded}/healthz`)).status).toBe(400);
    expect((await fetch(`http://${clear}/v1/processes`)).status).toBe(200);
  });

  it("ends with its daemon, connections and all", async () => {
    await using daemon = await startTls();
    await using clients = connectTo(urlOf(daemon), { tls: CA });
    await clients.filesystem.stat({ path: "/" });
    const idle = await handshake(daemon);
    expect(await daemon.stop()).toBe(0);
    if (!idle.closed) await once(idle.resume(), "close");
  });
});

describe("a certificate", () => {
  it("is taken up when Kubernetes swaps the link to it, and no connection notices", async () => {
    using mounted = temporaryDirectory();
    const root = mounted.path;
    const versions = { v1: server, v2: { ...server, cert: renewed.cert }, v3: renewed };
    for (const [version, { cert, key }] of Object.entries(versions)) {
      mkdirSync(`${root}/..${version}`);
      writeFileSync(`${root}/..${version}/tls.crt`, cert);
      writeFileSync(`${root}/..${version}/tls.key`, key, { mode: 0o600 });
    }
    symlinkSync("..v1", `${root}/..data`);
    for (const name of ["tls.crt", "tls.key"]) symlinkSync(`..data/${name}`, `${root}/${name}`);
    const swap = (version: string) => {
      symlinkSync(`..${version}`, `${root}/..data_tmp`);
      renameSync(`${root}/..data_tmp`, `${root}/..data`);
    };
    await using daemon = await startDaemon({ args: ["--tls-cert", `${root}/tls.crt`, "--tls-key", `${root}/tls.key`] });
    await using clients = connectTo(urlOf(daemon), { tls: CA });
    const following = followToEnd(clients.process.start({ command: "read line; echo got $line", stdin: true, id: "held" }));
    await eventually("it runs", async () => (await clients.process.listProcesses({})).processes.length === 1);
    const first = await fingerprint(daemon);
    swap("v2");
    const failure = await daemon.waitForLog(({ msg }) => msg.startsWith("cannot use the changed TLS files"));
    expect(failure.err).toMatchObject({ message: expect.stringContaining("key values mismatch") });
    expect(await fingerprint(daemon)).toBe(first);
    swap("v3");
    await daemon.waitForLog(
      ({ msg }) => msg === "TLS certificate loaded" && daemon.logs.filter((line) => line.msg === msg).length === 2,
    );
    expect(await fingerprint(daemon)).not.toBe(first);
    // The connection of before goes on.
    await clients.process.sendInput({ ...selectId("held"), data: Buffer.from("it\n") });
    expect((await following).text).toBe("got it\n");
  });

  it("that cannot be used refuses the start, naming the files", async () => {
    const broken = join(directory, "broken.pem");
    writeFileSync(broken, "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n");
    const files = { certPath: server.certPath, keyPath: server.keyPath, clientCaPath: undefined, clientCrlPath: undefined };
    const brokenList = join(directory, "broken-crl.pem");
    writeFileSync(brokenList, "-----BEGIN X509 CRL-----\nnone\n-----END X509 CRL-----\n");
    const none = `${directory}/none.pem`;
    const cases: [files: TlsFiles, why: string][] = [
      [{ ...files, certPath: none }, `cannot read the TLS certificate from file ${none}: no such file`],
      [{ ...files, certPath: broken }, `cannot use the TLS files ${broken}, ${server.keyPath}: `],
      [{ ...files, clientCaPath: server.keyPath }, `cannot use the TLS client CA ${server.keyPath}: it holds no certificate`],
      [{ ...files, clientCrlPath: broken }, `cannot use the TLS client CRL ${broken}: it holds no revocation list in PEM`],
      [
        { ...files, clientCrlPath: brokenList },
        `cannot use the TLS files ${server.certPath}, ${server.keyPath}, ${brokenList}: `,
      ],
    ];
    for (const [unusable, why] of cases) expect.soft(() => readTlsMaterial(unusable), why).toThrow(why);
    const args = ["--port", "0", "--tls-cert", server.certPath, "--tls-key", renewed.keyPath];
    const { ended, stderr } = await runPicod(args, { env: { PICOD_ACCESS_TOKEN: TOKEN } });
    expect([ended, stderr]).toEqual([
      2,
      expect.stringContaining(`cannot use the TLS files ${server.certPath}, ${renewed.keyPath}: `),
    ]);
  });
});

describe("a client certificate", () => {
  const scopesFile = join(directory, "scopes.json");
  const GATEWAY = { name: "gateway", certificate: "uri:spiffe://cluster/gateway", scopes: ["files:read"] };
  const write = (...callers: object[]) => writeFileSync(scopesFile, JSON.stringify({ callers }), { mode: 0o600 });
  const startMutual = () => startTls("--tls-client-ca", clientAuthority.certPath, "--scopes-file", scopesFile);
  const stat = async (daemon: Daemon, certificate: Certificate, token: string | null = null) => {
    await using clients = connectTo(urlOf(daemon), { tls: shown(certificate), token });
    return await clients.filesystem.stat({ path: "/" }).then(
      () => "ok",
      (error: unknown) => ConnectError.from(error).message,
    );
  };

  it("opens what the scopes file gives its names, over every protocol", async () => {
    write(GATEWAY);
    await using daemon = await startMutual();
    for (const protocol of PROTOCOLS) {
      await using clients = connectTo(urlOf(daemon), { protocol, tls: shown(gateway), token: null });
      await expect(clients.filesystem.stat({ path: "/" })).resolves.toMatchObject({ entry: { path: "/" } });
      await expect(clients.process.execute({ command: "true" })).rejects.toMatchObject({ code: Code.PermissionDenied });
    }
    expect(await daemon.waitForLog(({ code }) => code === "ok")).toMatchObject({ caller: "gateway", how: "certificate" });
    expect((await ask(daemon, "/v1/files//etc/hostname", shown(gateway))).status).toBe(200);
    expect((await ask(daemon, "/metrics", shown(gateway))).status).toBe(403);
    // E2B's clients say so who acts.
    const headers = { authorization: `Basic ${Buffer.from("root:").toString("base64")}` };
    expect((await ask(daemon, "/files?path=/etc/hostname", { ...shown(gateway), headers })).status).toBe(200);
  });

  it("is known by URI, DNS, e-mail address or common name, each by its kind", async () => {
    const known = ["dns:gateway.internal", "email:ops@example.org", "cn:ops"];
    write(GATEWAY, ...known.map((certificate, at) => ({ name: `known-${at}`, certificate, scopes: ["files:read"] })));
    await using daemon = await startMutual();
    expect(await stat(daemon, client("dns", { names: "DNS:gateway.internal" }))).toBe("ok");
    expect(await stat(daemon, client("email", { names: "email:ops@example.org" }))).toBe("ok");
    expect(await stat(daemon, client("cn", { subject: "/O=example/CN=ops" }))).toBe("ok");
    const unknown = "nobody is known by the names of the client certificate";
    expect(await stat(daemon, client("other-kind", { names: "DNS:ops" }))).toContain(unknown);
    expect(await stat(daemon, client("two-names", { subject: "/CN=ops/CN=other" }))).toContain(unknown);
  });

  it("does not count when another authority, or none, stands behind it", async () => {
    write(GATEWAY);
    const names = "URI:spiffe://cluster/gateway";
    const own = make("own", { names });
    const why = "the client certificate does not count: ";
    const attacks: Record<string, [Certificate, why: string]> = {
      "another authority": [make("forged", { issuer: authority, names, usage: "clientAuth" }), why],
      "its own": [own, `${why}DEPTH_ZERO_SELF_SIGNED_CERT`],
      "an expired one": [client("expired", { names, expired: true }), `${why}CERT_HAS_EXPIRED`],
      "a server's": [client("misused", { names, usage: "serverAuth" }), `${why}INVALID_PURPOSE`],
      "no known name": [client("stranger"), 'by the names of the client certificate: "cn:stranger"'],
    };
    await using daemon = await startMutual();
    for (const [title, [certificate, message]] of Object.entries(attacks)) {
      expect.soft(await stat(daemon, certificate), title).toContain(message);
    }
    expect((await ask(daemon, "/v1/files//etc/hostname")).status).toBe(401);
    // Public is public, also to them.
    expect((await ask(daemon, "/healthz", shown(own))).status).toBe(200);
    // A token is good whatever is shown beside it, and a wrong one is not made good by a certificate.
    expect(await stat(daemon, own, TOKEN)).toBe("ok");
    expect(await stat(daemon, gateway, "wrong")).toContain("missing or wrong access token");
  });

  it("does not count when it was revoked, or nobody can say whether it was", async () => {
    write(GATEWAY, { name: "other", certificate: "cn:other", scopes: ["files:read"] });
    const other = client("other");
    const crl = join(directory, "client-crl.pem");
    const none = makeRevocationList(directory, clientAuthority, []);
    writeFileSync(crl, none);
    const files = ["--tls-client-ca", clientAuthority.certPath, "--tls-client-crl", crl, "--scopes-file", scopesFile];
    await using daemon = await startTls(...files);
    const loaded = () => daemon.logs.filter(({ msg }) => msg === "TLS certificate loaded").length;
    const change = async (list: string) => {
      const before = loaded();
      writeFileSync(crl, list);
      await eventually("it is read again", () => loaded() > before);
    };
    const why = "the client certificate does not count: ";
    expect([await stat(daemon, gateway), await stat(daemon, other)]).toEqual(["ok", "ok"]);
    // Of another authority first: each counts for its own.
    const foreign = makeRevocationList(directory, authority, []);
    await change(foreign + makeRevocationList(directory, clientAuthority, [gateway]));
    expect(await stat(daemon, gateway)).toContain(`${why}CERT_REVOKED`);
    expect(await stat(daemon, other)).toBe("ok");
    await change(makeRevocationList(directory, clientAuthority, [], { expired: true }));
    expect(await stat(daemon, other)).toContain(`${why}CRL_HAS_EXPIRED`);
    await change(foreign);
    expect(await stat(daemon, other)).toContain(`${why}UNABLE_TO_GET_CRL`);
    writeFileSync(crl, "no list");
    const kept = "cannot use the changed TLS files; the present ones stay in force";
    await daemon.waitForLog(({ msg }) => msg === kept);
    await change(none);
    expect([await stat(daemon, gateway), await stat(daemon, other)]).toEqual(["ok", "ok"]);
  });

  it("is forgotten by the scopes file also on a connection that is open", async () => {
    write(GATEWAY);
    await using daemon = await startMutual();
    await using clients = connectTo(urlOf(daemon), { tls: shown(gateway), token: null });
    const codeOf = async () =>
      ConnectError.from(await clients.filesystem.stat({ path: "/" }).catch((error: unknown) => error)).code;
    await clients.filesystem.stat({ path: "/" });
    write();
    await eventually("nobody is known", async () => (await codeOf()) === Code.Unauthenticated);
  });

  it("is shown once for a session that is taken up again, until other authorities count", async () => {
    write(GATEWAY);
    const clientCa = join(directory, "client-ca.pem");
    writeFileSync(clientCa, clientAuthority.cert);
    await using daemon = await startTls("--tls-client-ca", clientCa, "--scopes-file", scopesFile);
    const request = "GET /v1/files//etc/hostname HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    const connect = async (session?: Buffer) => {
      const socket = await handshake(daemon, { ...shown(gateway), ...(session === undefined ? {} : { session }) });
      let latest = session;
      socket.on("session", (ticket) => {
        latest = ticket;
      });
      const reused = socket.isSessionReused();
      socket.write(request);
      const answer = await text(socket);
      return { status: answer.slice(9, 12), reused, session: latest };
    };
    const first = await connect();
    expect(first).toMatchObject({ status: "200", reused: false });
    const again = await connect(first.session);
    expect(again).toMatchObject({ status: "200", reused: true });
    writeFileSync(clientCa, authority.cert);
    await eventually(
      "other authorities count",
      () => daemon.logs.filter(({ msg }) => msg === "TLS certificate loaded").length === 2,
    );
    expect(await connect(again.session)).toMatchObject({ status: "401", reused: false });
  });

  it("is looked for nowhere but where its authority is configured", async () => {
    write(GATEWAY);
    const args = ["--port", "0", ...flagsOf(server), "--scopes-file", scopesFile];
    const { ended, stderr } = await runPicod(args, { env: { PICOD_ACCESS_TOKEN: TOKEN } });
    expect([ended, stderr]).toEqual([
      2,
      expect.stringContaining("gateway is known by a certificate, and --tls-client-ca is missing"),
    ]);
    await using daemon = await startTls();
    expect(await stat(daemon, gateway)).toContain("missing or wrong access token");
  });
});

describe("subjectAltNames", () => {
  it.each<[text: string, names: string[]]>([
    ["URI:spiffe://cluster/a, DNS:b.c, email:d@e.f, IP Address:127.0.0.1", ["uri:spiffe://cluster/a", "dns:b.c", "email:d@e.f"]],
    ['DNS:"a, URI:spiffe://cluster/gateway"', ["dns:a, URI:spiffe://cluster/gateway"]],
    ['URI:"spiffe://a\\u002c b", DNS:c', ["uri:spiffe://a, b", "dns:c"]],
    ['DNS:"unfinished, URI:x', []],
    ['DirName:"CN=a\\\\\\u002c URI:spiffe://cluster/gateway", URI:y', ["uri:y"]],
    ["othername:<unsupported>, URI:y", ["uri:y"]],
    ["", []],
  ])("of %s are %j", (text, names) => {
    expect(subjectAltNames(text)).toEqual(names);
  });
});
