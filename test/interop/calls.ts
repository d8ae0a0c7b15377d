import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { ServerReflection } from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { FilesystemService } from "../../src/gen/picod/v1/filesystem_pb.js";
import { Outcome_Reason, type ProcessEvent, ProcessService } from "../../src/gen/picod/v1/process_pb.js";
import { ProcessService as SandboxdProcessService } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { invoke, type RpcClient } from "./rpc-client.js";

const CONTENT = randomBytes(8 * 1024 * 1024);
const SHA256 = createHash("sha256").update(CONTENT).digest("hex");
const CHUNK_BYTES = 512 * 1024;
/** More than --max-message-bytes by default. */
const TOO_LARGE_BYTES = 5 * 1024 * 1024;
const REFLECTED = ["picod.v1.ProcessService", "picod.v1.FilesystemService.Stat", "no.such.Symbol"];

/** Does not end by itself, and neither does its child; both have the directory in their command line. */
const endless = (directory: string) => `touch ${directory}/started; sh -c 'sleep 1000; : ${directory}'; : ${directory}`;

/** The same calls, with the same expectations, for a client library: all on one connection to one daemon. */
export function describeCalls(name: string, connect: (address: string) => RpcClient | Promise<RpcClient>): void {
  describe(name, () => {
    let daemon: Daemon;
    let client: RpcClient;
    beforeAll(async () => {
      daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
      client = await connect(`127.0.0.1:${daemon.port}`);
    });
    afterAll(async () => {
      await client[Symbol.asyncDispose]();
      await daemon[Symbol.asyncDispose]();
    });
    const allGone = (directory: string) =>
      eventually("everything it started is gone", () => processesNamed(directory).length === 0 && daemon.children().length === 0);
    const execute = (command: string) => invoke(client, ProcessService.method.execute, [{ command }]);

    it("runs a command", async () => {
      const { responses, error } = await execute("echo ünïcode; echo wrong >&2; exit 3");
      expect(error).toBeUndefined();
      expect(responses).toMatchObject([{ stdout: "ünïcode\n", stderr: "wrong\n", exitCode: 3 }]);
    });

    it("runs a command with much output", async () => {
      const { responses, error } = await execute("seq 100000; exit 4");
      expect(error).toBeUndefined();
      expect(responses[0]?.stdout.slice(-14)).toBe("\n99999\n100000\n");
      expect(responses[0]).toMatchObject({
        exitCode: 4,
        outcome: { reason: Outcome_Reason.EXITED, exitCode: 4 },
        stdoutSummary: { totalBytes: 588_895n, omittedBytes: 0n },
      });
    });

    it("reads 8 MiB, whole", async () => {
      using directory = temporaryDirectory();
      writeFileSync(`${directory.path}/file`, CONTENT);
      const request = { path: `${directory.path}/file`, checksum: true };
      const { responses, error } = await invoke(client, FilesystemService.method.readFile, [request]);
      expect(error).toBeUndefined();
      const chunks = responses.map(({ response }) => (response.case === "chunk" ? response.value : new Uint8Array()));
      expect(Buffer.concat(chunks).equals(CONTENT)).toBe(true);
      expect(responses.at(-1)?.response).toMatchObject({ case: "summary", value: { sha256: SHA256 } });
    });

    it.each([false, true])("writes 8 MiB, whole (gzip: %s)", async (gzip) => {
      using directory = temporaryDirectory();
      const path = `${directory.path}/new/file`;
      const chunks = Array.from({ length: CONTENT.length / CHUNK_BYTES }, (_, at) =>
        CONTENT.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES),
      );
      const requests = [
        { request: { case: "metadata" as const, value: { path, sha256: SHA256 } } },
        ...chunks.map((value) => ({ request: { case: "chunk" as const, value } })),
      ];
      const { responses, error } = await invoke(client, FilesystemService.method.writeFile, requests, { gzip });
      expect(error).toBeUndefined();
      expect(responses).toMatchObject([{ bytesWritten: BigInt(CONTENT.length), sha256: SHA256 }]);
      expect(readFileSync(path).equals(CONTENT)).toBe(true);
      const stat = await invoke(client, FilesystemService.method.stat, [{ path }]);
      expect(stat.responses).toMatchObject([{ entry: { path, size: BigInt(CONTENT.length) } }]);
    });

    it("asks and is answered in turn on a stream that goes both ways", async () => {
      const requests = REFLECTED.map((value) => ({ messageRequest: { case: "fileContainingSymbol" as const, value } }));
      const { responses, error } = await invoke(client, ServerReflection.method.serverReflectionInfo, requests);
      expect(error).toBeUndefined();
      const cases = responses.map(({ messageResponse }) => messageResponse.case);
      expect(cases).toEqual(["fileDescriptorResponse", "fileDescriptorResponse", "errorResponse"]);
    });

    it("follows a process while another call streams its input, and again after its end", async () => {
      const process = { selector: { case: "id" as const, value: "cat" } };
      const started = invoke(client, ProcessService.method.start, [{ command: "cat", id: "cat", stdin: true }]);
      const runs = async () => (await invoke(client, ProcessService.method.getProcess, [{ process }])).error === undefined;
      await eventually("the process runs", runs);
      const pieces = ["one ", "two ", "three"].map((text) => ({
        request: { case: "data" as const, value: Buffer.from(text) },
      }));
      const target = { request: { case: "target" as const, value: { process, close: true } } };
      const input = await invoke(client, ProcessService.method.streamInput, [target, ...pieces]);
      expect(input).toMatchObject({ error: undefined, responses: [{ inputBytes: 13n }] });
      const attached = invoke(client, ProcessService.method.attach, [{ process }]);
      for (const { responses, error } of [await started, await attached]) {
        expect(error).toBeUndefined();
        const events = responses.map(({ event }) => event);
        expect(stdoutOf(events)).toBe("one two three");
        expect(events[0]?.event.case).toBe("started");
        expect(events.at(-1)?.event).toMatchObject({ case: "ended", value: { outcome: { exitCode: 0 } } });
      }
    });

    it("is told why with google.rpc.ErrorInfo", async () => {
      const { responses, error } = await invoke(client, FilesystemService.method.stat, [{ path: "/missing/ü" }]);
      expect(responses).toEqual([]);
      expect(error).toMatchObject({ code: Code.NotFound, rawMessage: expect.stringContaining("/missing/ü") });
      const info = { reason: "ENOENT", domain: "picod", metadata: { path: "/missing/ü" } };
      expect(error?.findDetails(ErrorInfoSchema)).toMatchObject([info]);
    });

    it("ends a command when its deadline passes", async () => {
      using directory = temporaryDirectory();
      const request = { command: endless(directory.path), timeout: 0 };
      const { error } = await invoke(client, ProcessService.method.execute, [request], { deadlineMs: 500 });
      expect(error?.code).toBe(Code.DeadlineExceeded);
      await allGone(directory.path);
    });

    it("ends a command when it cancels the call", async () => {
      using directory = temporaryDirectory();
      const cancel = new AbortController();
      const request = { command: endless(directory.path), timeout: 0 };
      const call = invoke(client, ProcessService.method.execute, [request], { cancelSignal: cancel.signal });
      await eventually("the command runs", () => existsSync(`${directory.path}/started`));
      cancel.abort();
      expect((await call).error?.code).toBe(Code.Canceled);
      await allGone(directory.path);
    });

    it("ends a process in the middle of the stream that owns it", async () => {
      using directory = temporaryDirectory();
      const cancel = new AbortController();
      const request = { config: { command: ["sh", "-c", `echo first; ${endless(directory.path)}`] } };
      const call = invoke(client, SandboxdProcessService.method.start, [request], { cancelSignal: cancel.signal });
      await eventually("the command runs", () => existsSync(`${directory.path}/started`));
      cancel.abort();
      expect((await call).error?.code).toBe(Code.Canceled);
      await allGone(directory.path);
    });

    it("may compress what it sends", async () => {
      const stdin = Buffer.from("compressible ".repeat(10_000));
      const request = { command: "cat", stdin };
      const { responses, error } = await invoke(client, ProcessService.method.execute, [request], { gzip: true });
      expect(error).toBeUndefined();
      expect(responses[0]?.stdout).toBe(stdin.toString());
    });

    it.each([false, true])("is refused a message over the limit, however small on the wire (gzip: %s)", async (gzip) => {
      const request = { command: "cat", stdin: Buffer.alloc(TOO_LARGE_BYTES) };
      const { error } = await invoke(client, ProcessService.method.execute, [request], { gzip });
      expect(error?.code).toBe(Code.ResourceExhausted);
    });

    it.each(["/picod.v1.ProcessService/NoSuchMethod", "/no.such.Service/Method"])(
      "is told that there is no %s",
      async (procedure) => {
        const call = { procedure, requests: [new Uint8Array()], token: TOKEN, deadlineMs: undefined, gzip: false };
        for (const kind of ["unary", "server_streaming", "client_streaming"] as const)
          expect(await client.call({ ...call, kind })).toMatchObject({ code: Code.Unimplemented, responses: [] });
      },
    );

    it("is refused without a token, and with a wrong one", async () => {
      for (const token of [null, "wrong"]) {
        const unary = await invoke(client, ProcessService.method.execute, [{ command: "true" }], { token });
        const streamed = await invoke(client, FilesystemService.method.readFile, [{ path: "/etc/passwd" }], { token });
        const upload = { request: { case: "metadata" as const, value: { path: "/tmp/picod-never" } } };
        const sent = await invoke(client, FilesystemService.method.writeFile, [upload], { token });
        for (const { responses, error } of [unary, streamed, sent])
          expect({ code: error?.code, responses }).toEqual({ code: Code.Unauthenticated, responses: [] });
      }
    });
  });
}

function stdoutOf(events: readonly (ProcessEvent | undefined)[]): string {
  const pieces = events.map((event) => (event?.event.case === "output" ? event.event.value.output : undefined));
  return Buffer.concat(pieces.map((piece) => (piece?.case === "stdout" ? piece.value : new Uint8Array()))).toString();
}
