import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../src/auth/token.js";
import { assertComplete, type Config, loadConfig, type RawFlags, SETTINGS, type SettingName } from "../src/config.js";

const NAMES = Object.keys(SETTINGS) as SettingName[];

const PEM = { type: "spki", format: "pem" } as const;
const RSA_PUBLIC_KEY = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export(PEM).toString();
const ED25519_PUBLIC_KEY = generateKeyPairSync("ed25519").publicKey.export(PEM).toString();

/** Text, and what it means; undefined where it is refused. */
const VALUES: Record<SettingName, [text: string, value: unknown][]> = {
  port: [
    ["0", 0],
    ["49983", 49983],
    ["65535", 65535],
    ["65536", undefined],
    ["-1", undefined],
    ["80.5", undefined],
    ["0x50", undefined],
    ["8e1", undefined],
    [" 80", undefined],
    ["http", undefined],
    ["tcp://10.0.0.1:49983", undefined],
  ],
  imageName: [["python:3.12", "python:3.12"]],
  sessionDir: [
    ["/workspace/sessions", "/workspace/sessions"],
    ["sessions", undefined],
  ],
  sessionIdleTimeoutMs: [
    ["30m", 1_800_000],
    ["0", undefined],
  ],
  sessionMaxLifetimeMs: [
    ["4h", 14_400_000],
    ["0s", undefined],
  ],
  mcpMaxFileSizeBytes: [
    ["10MiB", 10_485_760],
    ["0", undefined],
    ["1GiB", undefined],
  ],
  mcpMaxFiles: [
    ["0", 0],
    ["100", 100],
    ["many", undefined],
  ],
  mcpTimeoutMs: [
    ["300s", 300_000],
    ["0", undefined],
  ],
  mcpBlockedPaths: [
    ["/etc/shadow", ["/etc/shadow"]],
    ["~/.ssh", ["~/.ssh"]],
    ["/proc/*/environ", ["/proc/*/environ"]],
    ["etc/shadow", undefined],
    ["/a/../b", undefined],
    ["/[", undefined],
  ],
  mcpAllowedOrigins: [
    ["http://localhost:6274", ["http://localhost:6274"]],
    ["https://example.org", ["https://example.org"]],
    ["https://example.org/", undefined],
    ["https://example.org:443", undefined],
    ["null", undefined],
    ["*", undefined],
    ["file:///", undefined],
  ],
  host: [
    ["127.0.0.1", "127.0.0.1"],
    ["::", "::"],
  ],
  accessTokenFile: [
    ["/run/secrets/token", "/run/secrets/token"],
    ["relative/token", undefined],
    ["", undefined],
  ],
  policy: [
    ["/etc/picod/policy.toml", "/etc/picod/policy.toml"],
    ["policy.toml", undefined],
    ["", undefined],
  ],
  scopesFile: [
    ["/etc/picod/scopes.json", "/etc/picod/scopes.json"],
    ["scopes.json", undefined],
    ["", undefined],
  ],
  tlsCert: [
    ["/etc/picod/tls.pem", "/etc/picod/tls.pem"],
    ["tls.pem", undefined],
    ["", undefined],
  ],
  tlsKey: [
    ["/etc/picod/tls.pem", "/etc/picod/tls.pem"],
    ["tls.pem", undefined],
    ["", undefined],
  ],
  tlsClientCa: [
    ["/etc/picod/tls.pem", "/etc/picod/tls.pem"],
    ["tls.pem", undefined],
    ["", undefined],
  ],
  tlsClientCrl: [
    ["/etc/picod/crl.pem", "/etc/picod/crl.pem"],
    ["crl.pem", undefined],
    ["", undefined],
  ],
  jwtPublicKey: [
    ["/etc/picod/key.pem", "/etc/picod/key.pem"],
    ["key.pem", undefined],
    ["", undefined],
  ],
  jwksFile: [
    ["/etc/picod/key.pem", "/etc/picod/key.pem"],
    ["key.pem", undefined],
    ["", undefined],
  ],
  metadataUrl: [
    ["http://169.254.169.254/latest/meta-data/picod-token", "http://169.254.169.254/latest/meta-data/picod-token"],
    ["https://169.254.169.254/", undefined],
    ["http://user:secret@169.254.169.254/", undefined],
    ["file:///etc/passwd", undefined],
    ["169.254.169.254", undefined],
  ],
  metadataFlavor: [
    ["plain", "plain"],
    ["imdsv2", "imdsv2"],
    ["gcp", "gcp"],
    ["azure", "azure"],
    ["AWS", undefined],
    ["toString", undefined],
  ],
  insecureNoAuth: [
    ["true", true],
    ["1", true],
    ["false", false],
    ["0", false],
    ["yes", undefined],
    ["TRUE", undefined],
  ],
  root: [
    ["/srv/files", "/srv/files"],
    ["srv", undefined],
    ["/a\0b", undefined],
  ],
  workdir: [
    ["/workspace", "/workspace"],
    ["~", undefined],
  ],
  user: [["agent", "agent"]],
  env: [
    ["A=1", { A: "1" }],
    ["A=", { A: "" }],
    ["A=b=c", { A: "b=c" }],
    ["A=1\nB=two words\n", { A: "1", B: "two words" }],
    ["A", undefined],
    ["=1", undefined],
    ["A=1\nB", undefined],
  ],
  shell: [
    ["/bin/zsh", "/bin/zsh"],
    ["zsh", undefined],
  ],
  defaultTimeoutMs: [
    ["0", 0],
    ["30", 30_000],
    ["1.5", 1_500],
    ["500ms", 500],
    ["10s", 10_000],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["0.5h", 1_800_000],
    ["2147483647ms", 2_147_483_647],
    ["2147483648ms", undefined],
    ["25d", undefined],
    ["-1s", undefined],
    ["1e3", undefined],
    ["10 s", undefined],
    [".5s", undefined],
    ["forever", undefined],
  ],
  killGraceMs: [["250ms", 250]],
  shutdownGraceMs: [["1m", 60_000]],
  maxProcesses: [
    ["1", 1],
    ["100000", 100_000],
    ["0", undefined],
    ["100001", undefined],
  ],
  maxOutputBytes: [
    ["0", 0],
    ["65536", 65_536],
    ["512KiB", 524_288],
    ["64MiB", 67_108_864],
    ["65MiB", undefined],
    ["1GiB", undefined],
    ["1MB", undefined],
    ["1.5MiB", undefined],
    ["1 MiB", undefined],
    ["-1", undefined],
  ],
  maxMessageBytes: [
    ["1KiB", 1024],
    ["1GiB", 1_073_741_824],
    ["0", undefined],
    ["1023", undefined],
  ],
  alsoListen: [
    ["127.0.0.1:8080", [{ host: "127.0.0.1", port: 8080, trusted: false, cleartext: false }]],
    ["localhost:0,no-auth", [{ host: "localhost", port: 0, trusted: true, cleartext: false }]],
    [
      "[::1]:9090,no-auth\n0.0.0.0:80\n",
      [
        { host: "::1", port: 9090, trusted: true, cleartext: false },
        { host: "0.0.0.0", port: 80, trusted: false, cleartext: false },
      ],
    ],
    ["127.0.0.1:1,no-tls", [{ host: "127.0.0.1", port: 1, trusted: false, cleartext: true }]],
    ["127.0.0.1:1,no-auth,no-tls", [{ host: "127.0.0.1", port: 1, trusted: true, cleartext: true }]],
    ["8080", undefined],
    ["::1:8080", undefined],
    ["127.0.0.1:70000", undefined],
    ["127.0.0.1:80,trusted", undefined],
  ],
  authPublicKey: [
    [RSA_PUBLIC_KEY, expect.objectContaining({ asymmetricKeyType: "rsa" })],
    ["-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----", undefined],
    [ED25519_PUBLIC_KEY, undefined],
    ["", undefined],
  ],
  jwtAudience: [["sandbox-1", "sandbox-1"]],
  workspace: [
    ["/workspace", "/workspace"],
    ["workspace", undefined],
  ],
  sandboxd: [["false", false]],
  metadataEnvPrefix: [["POD_", "POD_"]],
  noEnvd: [["true", true]],
  envdUser: [["agent", "agent"]],
  metricsPublic: [["true", true]],
  stallThresholdMs: [
    ["2s", 2000],
    ["0", 0],
    ["late", undefined],
  ],
  traceCommands: [["true", true]],
  auditLog: [
    ["/var/log/picod/audit.jsonl", "/var/log/picod/audit.jsonl"],
    ["audit.jsonl", undefined],
  ],
  auditCommands: [["true", true]],
  auditLogMaxBytes: [
    ["0", 0],
    ["1MiB", 1024 ** 2],
    ["much", undefined],
  ],
  auditLogFiles: [
    ["1", 1],
    ["0", undefined],
  ],
  terminalPage: [["true", true]],
  logLevel: [
    ["trace", "trace"],
    ["silent", "silent"],
    ["verbose", undefined],
  ],
  logFormat: [
    ["json", "json"],
    ["pretty", "pretty"],
    ["auto", "auto"],
    ["text", undefined],
  ],
};

const CASES = NAMES.flatMap((name) => VALUES[name].map(([text, value]) => [name, text, value] as const));
const ACCEPTED = CASES.filter(([, , value]) => value !== undefined);
const REFUSED = CASES.filter(([, , value]) => value === undefined);

/** As commander hands it over. */
function asFlag(name: SettingName, text: string): readonly string[] {
  return SETTINGS[name].repeatable ? text.split("\n").filter(Boolean) : [text];
}

describe("loadConfig", () => {
  it("completes everything with defaults", () => {
    const config = loadConfig({}, {});
    expect(config).toEqual(Object.fromEntries(NAMES.map((name) => [name, SETTINGS[name].default])));
    expect(config).toMatchObject({ port: 49983, host: "0.0.0.0", insecureNoAuth: false, root: "/", defaultTimeoutMs: 30_000 });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it.each(ACCEPTED)("reads %s from %j, given by variable or by flag", (name, text, value) => {
    expect(loadConfig({}, { [SETTINGS[name].env]: text })[name]).toEqual(value);
    expect(loadConfig({ [name]: asFlag(name, text) }, {})[name]).toEqual(value);
  });

  it.each(REFUSED)("refuses %s of %j, naming flag and variable", (name, text) => {
    const { env, flag } = SETTINGS[name];
    const [long] = flag.split(" ");
    expect(() => loadConfig({}, { [env]: text })).toThrow(ConfigError);
    expect(() => loadConfig({}, { [env]: text })).toThrow(`invalid value for ${env} (flag ${long}): `);
    expect(() => loadConfig({ [name]: asFlag(name, text) }, {})).toThrow(`invalid value for ${long} (variable ${env}): `);
  });

  it.each(NAMES)("prefers the flag for %s, even to a variable that is wrong", (name) => {
    const [text = "", value] = VALUES[name][0] ?? [];
    expect(loadConfig({ [name]: asFlag(name, text) }, { [SETTINGS[name].env]: "\0 wrong" })[name]).toEqual(value);
  });

  it.each(NAMES.filter((name) => !SETTINGS[name].emptyCounts))("takes an empty variable for %s as not set", (name) => {
    expect(loadConfig({}, { [SETTINGS[name].env]: "" })[name]).toEqual(SETTINGS[name].default);
  });

  it.each<SettingName>(["host", "user", "accessTokenFile", "workdir", "port", "maxOutputBytes", "defaultTimeoutMs"])(
    "refuses an empty flag for %s",
    (name) => {
      expect(() => loadConfig({ [name]: [""] }, {})).toThrow("invalid value for --");
    },
  );

  it("collects --env, the last value of a name winning", () => {
    const config = loadConfig({ env: ["A=1", "B=2", "A=3"] }, { PICOD_ENV: "C=4" });
    expect(config.env).toEqual({ A: "3", B: "2" });
  });

  it("takes the last of a flag that is repeated by mistake", () => {
    expect(loadConfig({ port: ["1", "2"] }, {}).port).toBe(2);
  });

  it("tells what to do when Kubernetes has set PICOD_PORT for a Service of that name", () => {
    expect(() => loadConfig({}, { PICOD_PORT: "tcp://10.0.0.1:49983" })).toThrow("enableServiceLinks: false");
  });

  it("wants to know for whom JWTs are, and one source of their keys", () => {
    const complete = (flags: RawFlags) => () => assertComplete(loadConfig(flags, {}));
    const [jwtPublicKey, jwksFile, jwtAudience] = [["/pem"], ["/jwks"], ["sandbox-1"]];
    expect(complete({ jwtPublicKey, jwtAudience })).not.toThrow();
    expect(complete({ jwtPublicKey })).toThrow("--jwt-audience is missing");
    expect(complete({ jwksFile })).toThrow("invalid value for --jwks-file (variable PICOD_JWKS_FILE): --jwt-audience is missing");
    expect(complete({ jwtPublicKey, jwksFile, jwtAudience })).toThrow("one of them says whose JWTs count");
  });

  it("wants both halves of a certificate, and TLS where clients are to show theirs", () => {
    const complete = (flags: RawFlags) => () => assertComplete(loadConfig(flags, {}));
    const [tlsCert, tlsKey, tlsClientCa] = [["/cert"], ["/key"], ["/ca"]];
    expect(complete({ tlsCert, tlsKey, tlsClientCa })).not.toThrow();
    expect(complete({ tlsCert })).toThrow("--tls-key is missing");
    expect(complete({ tlsKey })).toThrow("--tls-cert is missing");
    expect(complete({ tlsCert, tlsKey, tlsClientCrl: ["/crl"] })).toThrow("--tls-client-ca is missing");
    expect(complete({ tlsClientCa })).toThrow(
      "invalid value for --tls-client-ca (variable PICOD_TLS_CLIENT_CA): --tls-cert is missing",
    );
  });

  it("lets whoever reaches an address in only when that was said twice", () => {
    const flags = { alsoListen: ["0.0.0.0:8080,no-auth"] };
    for (const address of [...flags.alsoListen, "127.0.0.1.example.org:80,no-auth"]) {
      const load = () => loadConfig({ alsoListen: [address] }, {});
      expect(load).toThrow("no-auth on an address that others reach needs --insecure-no-auth too");
    }
    expect(loadConfig({ ...flags, insecureNoAuth: ["true"] }, {}).alsoListen).toEqual([
      { host: "0.0.0.0", port: 8080, trusted: true, cleartext: false },
    ]);
  });

  it("speaks cleartext beside TLS on loopback alone", () => {
    const load = () => loadConfig({ alsoListen: ["0.0.0.0:1,no-tls"], insecureNoAuth: ["true"] }, {});
    expect(load).toThrow("0.0.0.0:1: no-tls is for loopback alone");
  });

  it("takes --sandboxd for its ports and its root", () => {
    const config = loadConfig({ sandboxd: ["true"], host: ["127.0.0.1"], alsoListen: ["[::1]:1"] }, {});
    expect(config).toMatchObject({ root: "/workspace", port: 49983 });
    expect(config.alsoListen).toEqual([
      { host: "127.0.0.1", port: 8080, trusted: false, cleartext: false },
      { host: "127.0.0.1", port: 9090, trusted: false, cleartext: false },
      { host: "::1", port: 1, trusted: false, cleartext: false },
    ]);
    expect(loadConfig({ sandboxd: ["true"], root: ["/"] }, {}).root).toBe("/");
    const open = loadConfig({ sandboxd: ["true"], insecureNoAuth: ["true"] }, {});
    expect(open.alsoListen.every(({ trusted }) => trusted)).toBe(true);
  });

  it("names every variable after its flag", () => {
    for (const { flag, env } of Object.values(SETTINGS)) {
      const [long = ""] = flag.split(" ");
      expect(env).toBe(`PICOD_${long.slice(2).replaceAll("-", "_").toUpperCase()}`);
    }
  });

  it("keeps two full streams of output within what gRPC clients accept by default", () => {
    const { maxOutputBytes }: Config = loadConfig({}, {});
    expect(2 * maxOutputBytes).toBeLessThan(4 * 1024 * 1024);
  });
});
