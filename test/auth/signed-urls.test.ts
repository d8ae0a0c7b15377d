import { describe, expect, it } from "vitest";
import { ALL_SCOPES } from "../../src/auth/scopes.js";
import { type SignedRequest, SignedUrls } from "../../src/auth/signed-urls.js";
import { type Caller, DAEMON_TOKEN } from "../../src/call.js";

const REQUEST: SignedRequest = { method: "GET", path: "/tmp/a b", user: "" };
const later = () => Date.now() + 60_000;

describe("SignedUrls", () => {
  it("let in what was signed, HEAD with GET too", () => {
    const urls = new SignedUrls();
    const query = urls.sign({ ...REQUEST, user: "nobody" }, later(), false, DAEMON_TOKEN);
    expect(query.get("user")).toBe("nobody");
    expect(urls.redeem({ ...REQUEST, user: "nobody" }, query)).toMatchObject({ name: "daemon", how: "token" });
    expect(urls.redeem({ ...REQUEST, user: "nobody", method: "HEAD" }, query)).toMatchObject({
      name: "daemon",
      how: "token",
    });
  });

  it.each<[string, Partial<SignedRequest>]>([
    ["method", { method: "PUT" }],
    ["method that is never signed", { method: "DELETE" }],
    ["path", { path: "/tmp/a" }],
    ["user", { user: "root" }],
  ])("do not let in another %s", (_title, other) => {
    const urls = new SignedUrls();
    expect(urls.redeem({ ...REQUEST, ...other }, urls.sign(REQUEST, later(), false, DAEMON_TOKEN))).toBeUndefined();
  });

  it("do not let in what was changed, or signed by another daemon", () => {
    const urls = new SignedUrls();
    for (const [name, value] of [
      ["expires", String(Math.ceil(later() / 1000) + 1)],
      ["once", "x"],
      ["signature", ""],
      ["signature", "A".repeat(43)],
      ["signature", "ä"],
    ] as const) {
      const query = urls.sign(REQUEST, later(), false, DAEMON_TOKEN);
      query.set(name, value);
      expect.soft(urls.redeem(REQUEST, query), `${name}=${value}`).toBeUndefined();
    }
    expect(urls.redeem(REQUEST, new SignedUrls().sign(REQUEST, later(), false, DAEMON_TOKEN))).toBeUndefined();
    expect(urls.redeem(REQUEST, new URLSearchParams())).toBeUndefined();
  });

  it("carry the scope of their method and the confinement of their signer, and end with what it has shown", () => {
    const urls = new SignedUrls();
    const signer: Caller = {
      name: "ci",
      how: "jwt",
      scopes: ALL_SCOPES,
      pathPrefixes: ["/tmp", "/srv"],
      expiresAtMs: Date.now() + 5_000,
    };
    const query = urls.sign(REQUEST, later(), false, signer);
    expect(Number(query.get("expires")) * 1000).toBeLessThan(Date.now() + 7_000);
    const redeemed = { name: "ci", how: "jwt", scopes: new Set(["files:read"]), pathPrefixes: ["/tmp", "/srv"] };
    expect(urls.redeem(REQUEST, query)).toEqual(redeemed);
    for (const change of [
      () => query.delete("within"),
      () => query.append("within", "/"),
      () => query.set("by", "token:daemon"),
      () => query.delete("by"),
    ]) {
      const whole = new URLSearchParams(query);
      change();
      expect(urls.redeem(REQUEST, query)).toBeUndefined();
      for (const name of [...query.keys()]) query.delete(name);
      for (const [name, value] of whole) query.append(name, value);
    }
    const writing = { ...REQUEST, method: "PUT" };
    expect(urls.redeem(writing, urls.sign(writing, later(), false, DAEMON_TOKEN))?.scopes).toEqual(new Set(["files:write"]));
    expect(() => urls.sign(REQUEST, later(), false, { ...signer, pathPrefixes: [] })).toThrow("sign nothing");
  });

  it("expire", () => {
    const urls = new SignedUrls();
    expect(urls.redeem(REQUEST, urls.sign(REQUEST, Date.now() - 1_000, false, DAEMON_TOKEN))).toBeUndefined();
  });

  it("for single use work once, and not as others", () => {
    const urls = new SignedUrls();
    const query = urls.sign(REQUEST, later(), true, DAEMON_TOKEN);
    const withoutOnce = new URLSearchParams(query);
    withoutOnce.delete("once");
    expect(urls.redeem(REQUEST, withoutOnce)).toBeUndefined();
    expect(urls.redeem({ ...REQUEST, path: "/" }, query)).toBeUndefined();
    expect(urls.redeem(REQUEST, query)).toBeDefined();
    expect(urls.redeem(REQUEST, query)).toBeUndefined();
  });

  it("for single use that nobody uses give way to more", () => {
    const urls = new SignedUrls();
    const oldest = urls.sign(REQUEST, later(), true, DAEMON_TOKEN);
    for (let count = 0; count < 10_000; count++) urls.sign(REQUEST, later(), true, DAEMON_TOKEN);
    expect(urls.redeem(REQUEST, oldest)).toBeUndefined();
  });
});
