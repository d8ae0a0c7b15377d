import { create, type DescMessage, equals, fromBinary, type Message } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { setText } from "../../../src/encoded-text.js";
import { ReadFileResponseSchema } from "../../../src/gen/picod/v1/filesystem_pb.js";
import {
  AttachResponseSchema,
  ExecuteRequestSchema,
  ExecuteResponseSchema,
  Outcome_Reason,
  SendInputRequestSchema,
} from "../../../src/gen/picod/v1/process_pb.js";
import { encodeMessage } from "../../../src/server/grpc/encode-message.js";

const LARGE = Buffer.alloc(100_000, "large ");
const LARGE_TEXT = "groß ".repeat(20_000);

const MESSAGES: readonly (readonly [title: string, schema: DescMessage, message: Message])[] = [
  ["nothing", ExecuteResponseSchema, create(ExecuteResponseSchema)],
  [
    "large bytes of a choice",
    ReadFileResponseSchema,
    create(ReadFileResponseSchema, { response: { case: "chunk", value: LARGE } }),
  ],
  [
    "large bytes of a message in a message",
    AttachResponseSchema,
    create(AttachResponseSchema, {
      event: { event: { case: "output", value: { output: { case: "stderr", value: LARGE }, offset: 7n } } },
    }),
  ],
  [
    "large bytes beside a message and an optional field",
    SendInputRequestSchema,
    create(SendInputRequestSchema, { process: { selector: { case: "id", value: "a" } }, data: LARGE, offset: 0n, writeId: "w" }),
  ],
  [
    "large bytes beside a map, a list and an optional field",
    ExecuteRequestSchema,
    create(ExecuteRequestSchema, { argv: ["a", ""], env: { A: "b" }, stdin: LARGE, timeout: 0, limits: { openFiles: 5n } }),
  ],
  [
    "large text beside messages",
    ExecuteResponseSchema,
    create(ExecuteResponseSchema, {
      stdout: LARGE_TEXT,
      stderr: LARGE_TEXT,
      exitCode: 3,
      outcome: { reason: Outcome_Reason.EXITED, exitCode: 3 },
      stdoutSummary: { totalBytes: 120_000n },
      processId: "p",
    }),
  ],
];

describe("encodeMessage", () => {
  it.each(MESSAGES)("loses nothing of a message: %s", (_title, schema, message) => {
    const bytes = Buffer.concat(encodeMessage(schema, message));
    expect(bytes.readUInt8(0)).toBe(0);
    expect(bytes.readUInt32BE(1)).toBe(bytes.length - 5);
    expect(equals(schema, fromBinary(schema, bytes.subarray(5)), message)).toBe(true);
  });

  it.each([
    [LARGE_TEXT, LARGE_TEXT],
    [LARGE_TEXT, "small"],
    ["", LARGE_TEXT],
  ])("sends text that is encoded already as it is, and others can read it (%#)", (stdout, stderr) => {
    const message = { stdout: "", stderr: "", exitCode: 3, outcome: { exitCode: 3 } };
    setText(message, "stdout", Buffer.from(stdout));
    setText(message, "stderr", Buffer.from(stderr));
    const read = create(ExecuteResponseSchema, message);
    expect([read.stdout === stdout, read.stderr === stderr]).toEqual([true, true]);
    const bytes = Buffer.concat(encodeMessage(ExecuteResponseSchema, message));
    expect(bytes.readUInt32BE(1)).toBe(bytes.length - 5);
    expect(equals(ExecuteResponseSchema, fromBinary(ExecuteResponseSchema, bytes.subarray(5)), read)).toBe(true);
  });
});
