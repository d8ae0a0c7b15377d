import { describe, expect, it } from "vitest";
import { ConfigError, parseToken } from "../../src/auth/token.js";

describe("parseToken", () => {
  it.each([
    ["a trailing newline", "abc\n", "abc"],
    ["a Windows line end", "abc\r\n", "abc"],
    ["white space around it", " \tabc \n", "abc"],
    ["a byte order mark", "\ufeffabc", "abc"],
    ["punctuation", "a-b.c_d~e+f/g=", "a-b.c_d~e+f/g="],
  ])("takes a token with %s", (_case, text, token) => {
    expect(parseToken(text, "here")).toBe(token);
  });

  it.each([
    ["nothing", "", "the access token from here is empty"],
    ["a newline alone", "\n", "the access token from here is empty"],
    ["a space inside", "abc def", "holds white space or characters that are not ASCII"],
    ["two lines", "abc\ndef\n", "holds white space or characters that are not ASCII"],
    ["an umlaut", "schlüssel", "holds white space or characters that are not ASCII"],
    ["a NUL byte", "abc\0", "holds white space or characters that are not ASCII"],
  ])("refuses %s", (_case, text, message) => {
    expect(() => parseToken(text, "here")).toThrow(ConfigError);
    expect(() => parseToken(text, "here")).toThrow(message);
  });

  it("never repeats the token in its error", () => {
    expect(() => parseToken("geheim es", "here")).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("geheim") }),
    );
  });
});
