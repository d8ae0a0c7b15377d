import { describe, expect, it } from "vitest";
import { TokenVerifier } from "../../src/auth/token-verifier.js";
import { eventually } from "../helpers/eventually.js";

const LONG_MS = 60_000;

describe("TokenVerifier.verify", () => {
  it.each(["Bearer first", "bearer first", "BEARER first", "Bearer   first", "Bearer first  "])("accepts %j", (header) => {
    expect(new TokenVerifier("first").verify(header)).toBe(true);
  });

  it.each([
    undefined,
    "",
    "first",
    "Bearer",
    "Bearer ",
    "Bearerfirst",
    "Basic first",
    "Bearer First",
    "Bearer firs",
    "Bearer first2",
    "Bearer first second",
    "Bearer first, Bearer first",
  ])("refuses %j", (header) => {
    expect(new TokenVerifier("first").verify(header)).toBe(false);
  });
});

describe("TokenVerifier.rotate", () => {
  it("accepts the new token at once, and the old one until the overlap is over", async () => {
    const verifier = new TokenVerifier("old");
    expect(verifier.rotate("new", 50)).toBe(true);
    expect([verifier.verify("Bearer new"), verifier.verify("Bearer old")]).toEqual([true, true]);
    await eventually("the overlap is over", () => !verifier.verify("Bearer old"));
    expect([verifier.verify("Bearer new"), verifier.verify("Bearer old")]).toEqual([true, false]);
  });

  it("does not prolong the overlap of a token by rotating again", async () => {
    const verifier = new TokenVerifier("old");
    verifier.rotate("new", 50);
    verifier.rotate("newer", LONG_MS);
    await eventually("the overlap is over", () => !verifier.verify("Bearer old"));
    expect([verifier.verify("Bearer newer"), verifier.verify("Bearer new"), verifier.verify("Bearer old")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("brings back a token that was on its way out", async () => {
    const verifier = new TokenVerifier("one");
    verifier.rotate("two", 50);
    verifier.rotate("one", 50);
    await eventually("the overlap is over", () => !verifier.verify("Bearer two"));
    expect([verifier.verify("Bearer one"), verifier.verify("Bearer two")]).toEqual([true, false]);
  });

  it("does nothing for the token that is in force", async () => {
    const verifier = new TokenVerifier("same");
    expect(verifier.rotate("same", 0)).toBe(false);
    expect(verifier.verify("Bearer same")).toBe(true);
  });
});
