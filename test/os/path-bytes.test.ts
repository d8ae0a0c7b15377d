import { expect, it } from "vitest";
import { decodePath, encodePath, isRawName, pathBytes } from "../../src/os/path-bytes.js";

it("text stays what it is", () => {
  for (const text of ["", "plain", "ünïcödé 日本語 🙂", "with\nnewline"]) {
    expect(decodePath(Buffer.from(text))).toBe(text);
    expect(encodePath(text)).toBe(text);
    expect(isRawName(text)).toBe(false);
  }
});

it("bytes that are not UTF-8 become characters and come back", () => {
  const bytes = Buffer.from([0x61, 0xff, 0xc3, 0xa9, 0x80, 0xe2, 0x82, 0x62]);
  const text = decodePath(bytes);
  expect(text).toBe("a\uefffé\uef80\uefe2\uef82b");
  expect(isRawName(text)).toBe(true);
  expect(pathBytes(text)).toEqual(bytes);
  expect(encodePath(text)).toEqual(Buffer.concat([bytes, Buffer.of(0)]));
});

it("a name that really holds the characters of the escapes comes back as it is", () => {
  const bytes = Buffer.from("x\uef80y");
  expect(decodePath(bytes)).not.toBe("x\uef80y");
  expect(pathBytes(decodePath(bytes))).toEqual(bytes);
});

it("every random sequence of bytes comes back", () => {
  let state = 42;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state >> 8;
  };
  const byte = () => (random() % 3 === 0 ? ([0xee, 0xbe, 0x80][random() % 3] ?? 0) : random() & 0xff);
  for (let round = 0; round < 5_000; round++) {
    const bytes = Buffer.from(Array.from({ length: random() % 12 }, byte));
    const text = decodePath(bytes);
    expect(pathBytes(text)).toEqual(bytes);
    // What is sent on the wire must be valid UTF-8.
    expect(text.isWellFormed()).toBe(true);
  }
});
