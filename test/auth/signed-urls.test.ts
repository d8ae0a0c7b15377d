import { describe, expect, it } from "vitest";
import { type SignedRequest, SignedUrls } from "../../src/auth/signed-urls.js";

const REQUEST: SignedRequest = { method: "GET", path: "/tmp/a b", user: "" };
const later = () => Date.now() + 60_000;

describe("SignedUrls", () => {
  it("let in what was signed, HEAD with GET too", () => {
    const urls = new SignedUrls();
    const query = urls.sign({ ...REQUEST, user: "nobody" }, later(), false);
    expect(query.get("user")).toBe("nobody");
    expect(urls.redeem({ ...REQUEST, user: "nobody" }, query)).toBe(true);
    expect(urls.redeem({ ...REQUEST, user: "nobody", method: "HEAD" }, query)).toBe(true);
  });

  it.each<[string, Partial<SignedRequest>]>([
    ["method", { method: "PUT" }],
    ["method that is never signed", { method: "DELETE" }],
    ["path", { path: "/tmp/a" }],
    ["user", { user: "root" }],
  ])("do not let in another %s", (_title, other) => {
    const urls = new SignedUrls();
    expect(urls.redeem({ ...REQUEST, ...other }, urls.sign(REQUEST, later(), false))).toBe(false);
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
      const query = urls.sign(REQUEST, later(), false);
      query.set(name, value);
      expect.soft(urls.redeem(REQUEST, query), `${name}=${value}`).toBe(false);
    }
    expect(urls.redeem(REQUEST, new SignedUrls().sign(REQUEST, later(), false))).toBe(false);
    expect(urls.redeem(REQUEST, new URLSearchParams())).toBe(false);
  });

  it("expire", () => {
    const urls = new SignedUrls();
    expect(urls.redeem(REQUEST, urls.sign(REQUEST, Date.now() - 1_000, false))).toBe(false);
  });

  it("for single use work once, and not as others", () => {
    const urls = new SignedUrls();
    const query = urls.sign(REQUEST, later(), true);
    const withoutOnce = new URLSearchParams(query);
    withoutOnce.delete("once");
    expect(urls.redeem(REQUEST, withoutOnce)).toBe(false);
    expect(urls.redeem({ ...REQUEST, path: "/" }, query)).toBe(false);
    expect([urls.redeem(REQUEST, query), urls.redeem(REQUEST, query)]).toEqual([true, false]);
  });

  it("for single use that nobody uses give way to more", () => {
    const urls = new SignedUrls();
    const oldest = urls.sign(REQUEST, later(), true);
    for (let count = 0; count < 10_000; count++) urls.sign(REQUEST, later(), true);
    expect(urls.redeem(REQUEST, oldest)).toBe(false);
  });
});
