import { describe, expect, it } from "vitest";
import { encodeGrpcMessage, respellGrpcMessage } from "../../../src/server/grpc/grpc-message.js";

describe("encodeGrpcMessage", () => {
  it.each([
    ["cannot open /etc/x: why? (a+b) #1", "cannot open /etc/x: why? (a+b) #1"],
    ["100 %", "100 %25"],
    ["ü\n文件\x7f", "%C3%BC%0A%E6%96%87%E4%BB%B6%7F"],
    ["half \ud83d of a pair", "half %EF%BF%BD of a pair"],
  ])("encodes what is not printable ASCII, and the percent sign: %j", (message, encoded) => {
    expect(encodeGrpcMessage(message)).toBe(encoded);
    expect(decodeURIComponent(encoded)).toBe(message.toWellFormed());
  });
});

describe("respellGrpcMessage", () => {
  it("changes that field alone", () => {
    const fields = new Headers({ "grpc-status": "5", "grpc-message": encodeURIComponent("/a: 5 %"), "x-other": "%2F" });
    expect(Object.fromEntries(respellGrpcMessage(fields))).toEqual({
      "grpc-status": "5",
      "grpc-message": "/a: 5 %25",
      "x-other": "%2F",
    });
    expect([...respellGrpcMessage(new Headers({ "grpc-status": "0" }))]).toEqual([["grpc-status", "0"]]);
  });
});
