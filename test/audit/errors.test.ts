import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CODE_OF_ERRNO } from "../../src/errors/errno-codes.js";
import { PicodError, type Reason } from "../../src/errors/picod-error.js";
import { CODE_OF_REASON, toConnectError } from "../../src/errors/to-connect-error.js";

const proto = (name: string) => document(`proto/picod/v1/${name}`);
const document = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8");

/** INVALID_ARGUMENT, as the comments have it; gRPC and Connect spell one of them differently. */
function protoName(code: Code): string {
  const name = (Code[code] ?? "").replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return name === "CANCELED" ? "CANCELLED" : name;
}

/** Which API documents the reasons. */
const DOCUMENTED_IN: Readonly<Record<Reason, readonly string[]>> = {
  INVALID_ARGUMENT: ["filesystem.proto", "process.proto"],
  INVALID_PATH: ["filesystem.proto", "process.proto"],
  OUTSIDE_ROOT: ["filesystem.proto"],
  USER_NOT_FOUND: ["filesystem.proto", "process.proto"],
  USER_NOT_PERMITTED: ["filesystem.proto", "process.proto"],
  GROUP_NOT_FOUND: ["filesystem.proto"],
  ROOT_PROTECTED: ["filesystem.proto"],
  NOT_A_REGULAR_FILE: ["filesystem.proto"],
  OFFSET_BEYOND_END: ["filesystem.proto", "process.proto"],
  FILE_SHRANK: ["filesystem.proto"],
  SIZE_MISMATCH: ["filesystem.proto"],
  CHECKSUM_MISMATCH: ["filesystem.proto"],
  PRECONDITION_FAILED: ["filesystem.proto"],
  ALREADY_EXISTS: ["filesystem.proto"],
  NO_SPACE: ["filesystem.proto"],
  TEXT_NOT_FOUND: ["docs/mcp.md"],
  TEXT_NOT_UNIQUE: ["docs/mcp.md"],
  PROGRAM_NOT_FOUND: ["process.proto"],
  PROGRAM_NOT_EXECUTABLE: ["process.proto"],
  UPLOAD_NOT_FOUND: ["filesystem.proto"],
  UPLOAD_CONFLICT: ["filesystem.proto"],
  UPLOAD_INCOMPLETE: ["filesystem.proto"],
  UPLOAD_BUSY: ["filesystem.proto"],
  UPLOAD_LIMIT_REACHED: ["filesystem.proto"],
  INVALID_ARCHIVE: ["filesystem.proto"],
  ARCHIVE_LIMIT_REACHED: ["filesystem.proto"],
  PROCESS_LIMIT_REACHED: ["process.proto"],
  PROCESS_ID_CONFLICT: ["process.proto"],
  PROCESS_NOT_FOUND: ["process.proto"],
  PROCESS_ENDED: ["process.proto"],
  PROCESS_RUNNING: ["process.proto"],
  NOT_A_TERMINAL: ["process.proto"],
  INPUT_CLOSED: ["process.proto"],
  INPUT_QUEUE_FULL: ["process.proto"],
  FOLLOWER_NOT_FOUND: ["process.proto"],
  FOLLOWER_LIMIT_REACHED: ["process.proto"],
  FOLLOWER_TOO_SLOW: ["process.proto"],
  WATCHER_TOO_SLOW: ["process.proto"],
  WATCH_LIMIT_REACHED: ["filesystem.proto"],
  TAG_IN_USE: ["process.proto"],
  LIMIT_EXCEEDED: ["docs/mcp.md"],
  PATH_BLOCKED: ["docs/mcp.md"],
  NOT_TEXT: ["docs/mcp.md"],
  IMAGE_NOT_AVAILABLE: ["docs/mcp.md"],
  SESSION_LIMIT_REACHED: ["docs/mcp.md"],
  SESSION_ENDED: ["docs/mcp.md"],
  SCOPE_MISSING: ["filesystem.proto", "process.proto"],
  POLICY_DENIED: ["filesystem.proto", "process.proto"],
  POLICY_LIMIT_REACHED: ["filesystem.proto"],
  SHUTTING_DOWN: ["process.proto"],
  INSTANCE_CHANGED: ["process.proto"],
};

describe("the codes of errors", () => {
  it.each(Object.entries(DOCUMENTED_IN) as [Reason, readonly string[]][])(
    "%s has one, and what documents the API names it",
    (reason, files) => {
      for (const file of files)
        expect(file.endsWith(".proto") ? proto(file) : document(file)).toContain(protoName(CODE_OF_REASON[reason]));
      expect(toConnectError(new PicodError(reason, "message"), "id")).toMatchObject({
        code: CODE_OF_REASON[reason],
        rawMessage: "message",
      });
    },
  );

  it("are only those that the proto comments name, for what a file operation meets", () => {
    for (const errno of [
      "ENOENT",
      "EACCES",
      "EROFS",
      "ENOTDIR",
      "EISDIR",
      "ELOOP",
      "ENAMETOOLONG",
      "ENOSPC",
      "EDQUOT",
      "EMFILE",
    ]) {
      const code = CODE_OF_ERRNO[errno];
      expect.soft(code, errno).toBeDefined();
      expect.soft(proto("filesystem.proto"), errno).toContain(protoName(code ?? Code.Unknown));
    }
  });

  it("that the proto comments name are codes", () => {
    const names = new Set(
      Object.values(Code)
        .filter((value) => typeof value === "number")
        .map((code) => protoName(code)),
    );
    for (const file of ["filesystem.proto", "process.proto"]) {
      const named = [...proto(file).matchAll(/^\s*\/\/\s{3}([A-Z_]+) {2,}/gm)].map((match) => match[1] ?? "");
      expect(named.length).toBeGreaterThan(3);
      for (const name of named) expect.soft(names, `${file}: ${name}`).toContain(name);
    }
  });
});
