import { readFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { PicodError } from "../../src/errors/picod-error.js";
import { toConnectError } from "../../src/errors/to-connect-error.js";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("toConnectError", () => {
  it("passes an error on that has its code already", () => {
    const error = new ConnectError("the deadline passed", Code.DeadlineExceeded);
    expect(toConnectError(error, "id")).toBe(error);
  });

  it("gives an expected failure its code, its reason and what it was about", () => {
    const error = toConnectError(new PicodError("FILE_SHRANK", "file shrank", { path: "/a" }), "id");
    expect(error).toMatchObject({ code: Code.Aborted, rawMessage: "file shrank" });
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "FILE_SHRANK", domain: "picod", metadata: { path: "/a" } },
    ]);
  });

  it("names what failed and the path of a system error", () => {
    const error = toConnectError(
      thrownBy(() => readFileSync("/missing/file")),
      "id",
    );
    expect(error).toMatchObject({ code: Code.NotFound, rawMessage: "cannot open /missing/file: no such file or directory" });
    const info = { reason: "ENOENT", domain: "picod", metadata: { path: "/missing/file" } };
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([info]);
  });

  it("knows the errors for which Node has no name", () => {
    const unnamed = { errno: -122, code: "UNKNOWN", syscall: "write", path: "/home/file" };
    const error = toConnectError(Object.assign(new Error("UNKNOWN: unknown error, write"), unnamed), "id");
    expect(error).toMatchObject({ code: Code.ResourceExhausted, rawMessage: "cannot write /home/file: disk quota exceeded" });
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "EDQUOT", metadata: { path: "/home/file" } }]);
  });

  it("takes an abort for the caller's", () => {
    expect(toConnectError(AbortSignal.abort().reason, "id")).toMatchObject({ code: Code.Canceled });
  });

  it("says nothing of what nobody expected but where to look", () => {
    for (const unexpected of [new TypeError("x is not a function"), new Error("secret"), "text", undefined, { code: "ENOENT" }]) {
      const error = toConnectError(unexpected, "7f3a");
      expect(error).toMatchObject({ code: Code.Internal, rawMessage: "internal error (request id 7f3a)", cause: unexpected });
    }
  });
});
