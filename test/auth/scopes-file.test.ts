import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parseScopes } from "../../src/auth/scopes-file.js";

const CI = { name: "ci", token: "secret-1", scopes: ["files:read"] };
const parse = (...callers: object[]) => parseScopes(JSON.stringify({ callers }));

describe("parseScopes", () => {
  it("reads tokens, digests, certificates, paths and expiries", () => {
    const digest = hash("sha256", "secret-2").toUpperCase();
    const callers = parse(
      { ...CI, paths: ["/workspace", "/tmp/a b"], expires: "2031-01-31T00:00:00+01:00" },
      { name: "ops", token_sha256: digest, scopes: ["admin", "process"] },
      { name: "gateway", certificate: "uri:spiffe://cluster/gateway", scopes: ["process:read"] },
    );
    const expiresAtMs = Date.parse("2031-01-30T23:00:00Z");
    const ci = {
      name: "ci",
      how: "token",
      scopes: new Set(["files:read"]),
      pathPrefixes: ["/workspace", "/tmp/a b"],
      expiresAtMs,
    };
    expect(callers).toEqual([
      { caller: ci, digest: hash("sha256", "secret-1") },
      { caller: { name: "ops", how: "token", scopes: new Set(["admin", "process"]) }, digest: digest.toLowerCase() },
      {
        caller: { name: "gateway", how: "certificate", scopes: new Set(["process:read"]) },
        certificate: "uri:spiffe://cluster/gateway",
      },
    ]);
    expect(parse()).toEqual([]);
  });

  it.each<[why: string, entry: unknown]>([
    [
      'callers[0] ("ci"): scopes: "file:read" is none of files:read, files:write, process, process:read, admin',
      { ...CI, scopes: ["file:read"] },
    ],
    ['callers[0] ("ci"): scopes: expected a list', { ...CI, scopes: [] }],
    ['callers[0] ("ci"): scopes: expected a list', { ...CI, scopes: "files:read" }],
    ["callers[0]: name: expected 1 to 64", { ...CI, name: undefined }],
    ['callers[0] ("a b"): name: expected 1 to 64', { ...CI, name: "a b" }],
    ['callers[0] ("daemon"): name: the log calls others by it', { ...CI, name: "daemon" }],
    ['callers[0] ("ci"): expected exactly one of token, token_sha256, certificate, got none', { ...CI, token: undefined }],
    [
      'callers[0] ("ci"): expected exactly one of token, token_sha256, certificate, got token and certificate',
      { ...CI, certificate: "cn:x" },
    ],
    ['callers[0] ("ci"): the access token from this entry is empty', { ...CI, token: " " }],
    ['callers[0] ("ci"): token: expected a string', { ...CI, token: 5 }],
    ['callers[0] ("ci"): token_sha256: expected 64 hexadecimal digits', { ...CI, token: undefined, token_sha256: "abc" }],
    ['callers[0] ("ci"): certificate: expected "uri:…"', { ...CI, token: undefined, certificate: "spiffe://x" }],
    ['callers[0] ("ci"): paths: "workspace" is not an absolute path', { ...CI, paths: ["workspace"] }],
    ['callers[0] ("ci"): paths: "/a/../b" is not an absolute path', { ...CI, paths: ["/a/../b"] }],
    ['callers[0] ("ci"): paths: "/a/" is not an absolute path', { ...CI, paths: ["/a/"] }],
    ['callers[0] ("ci"): paths: expected a list', { ...CI, paths: "/a" }],
    ['callers[0] ("ci"): paths: the scope process defeats them', { ...CI, scopes: ["files:read", "process"], paths: ["/a"] }],
    ['callers[0] ("ci"): expires: expected a time', { ...CI, expires: "tomorrow" }],
    ['callers[0] ("ci"): expires: expected a time', { ...CI, expires: "2031-02-31" }],
    ['callers[0] ("ci"): "path" is none of name, token,', { ...CI, path: ["/a"] }],
    ["callers[0]: it is not an object", "ci"],
  ])("refuses an entry: %s", (why, entry) => {
    expect(() => parseScopes(JSON.stringify({ callers: [entry] }))).toThrow(why);
  });

  it.each<[why: string, text: string]>([
    ["it is not JSON", '{"callers": [{"token": "secret-1"'],
    ['expected {"callers": […]}', "[]"],
    ['expected {"callers": […]}', "null"],
    ['"defaults" is not a field', '{"callers": [], "defaults": {}}'],
  ])("refuses a file: %s", (why, text) => {
    expect(() => parseScopes(text)).toThrow(why);
  });

  it("refuses two that could not be told apart, and names no token", () => {
    expect(() => parse(CI, { ...CI, token: "secret-2" })).toThrow('"ci" and "ci" both have the name ci');
    expect(() => parse(CI, { ...CI, name: "other" })).toThrow('"ci" and "other" both have the same token');
    const certified = { name: "a", certificate: "dns:x", scopes: ["admin"] };
    expect(() => parse(certified, { ...certified, name: "b" })).toThrow('"a" and "b" both have the certificate dns:x');
    for (const broken of [
      { ...CI, scopes: ["x"] },
      { ...CI, token: "secret 1" },
    ])
      expect(() => parse(broken)).not.toThrow(/secret/);
  });
});
