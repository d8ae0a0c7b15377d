import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { StartRequestSchema as EnvdStartRequest } from "../../src/gen/envd/process/process_pb.js";
import { CopyRequestSchema, WriteFileRequestSchema } from "../../src/gen/picod/v1/filesystem_pb.js";
import { AttachRequestSchema, ExecuteRequestSchema } from "../../src/gen/picod/v1/process_pb.js";
import { ExecuteRequestSchema as SandboxdExecuteRequest } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { subjectOf } from "../../src/interceptors/audit.js";

describe("subjectOf", () => {
  it.each([
    [
      "a command line",
      create(ExecuteRequestSchema, { command: "ls -l", user: "agent", env: { A: "1" } }),
      { paths: [], command: "ls -l", user: "agent" },
    ],
    ["arguments", create(ExecuteRequestSchema, { argv: ["ls", "-l"] }), { paths: [], command: ["ls", "-l"], user: undefined }],
    [
      "a program of E2B's clients",
      create(EnvdStartRequest, { process: { cmd: "/bin/bash", args: ["-l", "-c", "ls"] } }),
      { paths: [], command: ["/bin/bash", "-l", "-c", "ls"], user: undefined },
    ],
    [
      "a program of agent-sandbox' clients",
      create(SandboxdExecuteRequest, { config: { command: ["ls", "-l"] } }),
      { paths: [], command: ["ls", "-l"], user: undefined },
    ],
    ["two paths", create(CopyRequestSchema, { source: "/a", destination: "b" }), { paths: ["/a", "b"], command: undefined }],
    [
      "the first message of an upload",
      create(WriteFileRequestSchema, { request: { case: "metadata", value: { path: "/a", user: "agent" } } }),
      { paths: ["/a"], command: undefined, user: "agent" },
    ],
  ])("is %s", (_name, message, subject) => {
    expect(subjectOf(message)).toMatchObject(subject);
  });

  it.each([
    ["content", create(WriteFileRequestSchema, { request: { case: "chunk", value: new Uint8Array(3) } })],
    ["a process that is selected", create(AttachRequestSchema, { process: { selector: { case: "id", value: "proc_1" } } })],
  ])("is nothing for %s", (_name, message) => {
    expect(subjectOf(message)).toBe(undefined);
  });
});
