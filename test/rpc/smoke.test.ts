import { describe, expect, it } from "vitest";
import { connectTo, PROTOCOLS } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

describe.each(PROTOCOLS)("%s", (protocol) => {
  it("runs a command, writes a file and reads it back", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const path = `${directory.path}/a/b.txt`;

    const result = await clients.process.execute({ command: "echo out; echo err >&2; exit 3" });
    expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n", exitCode: 3 });

    if (!protocol.includes("gRPC-Web")) {
      async function* upload() {
        yield { request: { case: "metadata" as const, value: { path } } };
        yield { request: { case: "chunk" as const, value: Buffer.from("hello ") } };
        yield { request: { case: "chunk" as const, value: Buffer.from("world") } };
      }
      const written = await clients.filesystem.writeFile(upload());
      expect(written.bytesWritten).toBe(11n);
      expect(written.entry).toMatchObject({ name: "b.txt", path, size: 11n, permissions: "-rw-r--r--" });

      const chunks: Uint8Array[] = [];
      const cases: (string | undefined)[] = [];
      for await (const { response } of clients.filesystem.readFile({ path, checksum: true })) {
        cases.push(response.case);
        if (response.case === "chunk") chunks.push(response.value);
        if (response.case === "summary")
          expect(response.value.sha256).toBe("b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
      }
      expect(Buffer.concat(chunks).toString()).toBe("hello world");
      expect(cases).toEqual(["metadata", "chunk", "summary"]);
    }
  });
});
