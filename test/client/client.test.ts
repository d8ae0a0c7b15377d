import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { createClient, Outcome_Reason } from "../../src/client/index.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

/** Forwards to a port and cuts each connection after so many bytes from the daemon. */
async function cuttingProxy(port: number, cutAfterBytes: number) {
  const open = new Set<Socket>();
  const proxy = { port: 0, cuts: 0, close: () => undefined as unknown };
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    let bytes = 0;
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", cut).on("close", cut);
    }
    near.pipe(far);
    far.on("data", (chunk) => {
      bytes += chunk.length;
      near.write(chunk.subarray(0, Math.max(0, chunk.length - Math.max(0, bytes - cutAfterBytes))));
      if (bytes < cutAfterBytes) return;
      proxy.cuts++;
      cut();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.port = (server.address() as { port: number }).port;
  proxy.close = () => {
    for (const socket of open) socket.destroy();
    return server.close();
  };
  return proxy;
}

describe("the TypeScript client", () => {
  it("runs commands and moves files", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    expect(await client.run("echo $A", { env: { A: "b" } })).toMatchObject({ stdout: "b\n", exitCode: 0 });
    expect(await client.run(["echo", "$A"])).toMatchObject({ stdout: "$A\n" });
    const content = randomBytes(3_000_000);
    writeFileSync(`${directory.path}/a`, content);
    expect(await client.upload(`${directory.path}/a`, `${directory.path}/b`, { mode: 0o600 })).toMatchObject({
      size: 3_000_000n,
      mode: 0o600,
    });
    await client.download(`${directory.path}/b`, `${directory.path}/c`);
    expect(readFileSync(`${directory.path}/c`).equals(content)).toBe(true);
    await expect(client.download("/no/such/file", `${directory.path}/c`)).rejects.toThrow(/no such file/);
    expect(readdirSync(directory.path)).toEqual(["a", "b", "c"]);
  });

  it("types at a process, resizes, signals and waits", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    const cat = await client.start(["cat"], { stdin: true });
    await cat.write("typed\n");
    for await (const chunk of cat) {
      expect("data" in chunk && Buffer.from(chunk.data).toString()).toBe("typed\n");
      break;
    }
    await cat.signal("TERM");
    expect((await cat.wait()).outcome).toMatchObject({ reason: Outcome_Reason.SIGNALED, signal: "SIGTERM" });
    const shell = await client.start("stty size; read line; stty size", { pty: { cols: 100, rows: 30 } });
    let text = "";
    for await (const chunk of shell) {
      if ("data" in chunk) text += Buffer.from(chunk.data).toString();
      if (!text.endsWith("30 100\r\n")) continue;
      await shell.resize(120, 40);
      await shell.write("\r");
    }
    expect(text).toContain("40 120");
    const stopped = await client.start("sleep 1000");
    await stopped.stop();
    expect((await stopped.wait()).outcome?.reason).toBe(Outcome_Reason.CANCELLED);
    await expect(client.start("true", { cwd: "/no/such/place" })).rejects.toThrow(/no such file or directory/);
  });

  it("gives every byte once although the connection is cut again and again", async () => {
    await using daemon = await startDaemon();
    const proxy = await cuttingProxy(daemon.port, 150_000);
    using client = createClient({ url: `http://127.0.0.1:${proxy.port}`, token: TOKEN });
    const command = "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done";
    const process = await client.start(command, { backpressure: true });
    const hash = createHash("sha256");
    let expectedOffset = 0n;
    for await (const chunk of process) {
      if (!("data" in chunk)) throw new Error("something was trimmed");
      expect(chunk.offset).toBe(expectedOffset);
      expectedOffset += BigInt(chunk.data.length);
      hash.update(chunk.data);
    }
    expect((await process.wait()).outcome).toMatchObject({ reason: Outcome_Reason.EXITED, exitCode: 0 });
    const all = Array.from({ length: 100_000 }, (_, index) => `line ${index}\n`).join("");
    expect(hash.digest("hex")).toBe(createHash("sha256").update(all).digest("hex"));
    expect(proxy.cuts).toBeGreaterThan(3);
    proxy.close();
  });

  it("types every byte once, in order, although the connection is cut again and again", async () => {
    await using daemon = await startDaemon();
    const proxy = await cuttingProxy(daemon.port, 20_000);
    using client = createClient({ url: `http://127.0.0.1:${proxy.port}`, token: TOKEN });
    const process = await client.start("exec sha256sum", { stdin: true });
    const hash = createHash("sha256");
    const writes = Array.from({ length: 200 }, () => {
      const piece = randomBytes(20_000);
      hash.update(piece);
      return process.write(piece);
    });
    await Promise.all([...writes, process.closeInput()]);
    let text = "";
    for await (const chunk of process) if ("data" in chunk) text += Buffer.from(chunk.data).toString();
    expect(text).toBe(`${hash.digest("hex")}  -\n`);
    proxy.close();
  });

  it("finds a process by its id, and types behind what it was sent before", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    const before = await client.start(["cat"], { id: "job", stdin: true });
    await before.write("one ");
    using later = createClient({ url: daemon.url, token: TOKEN });
    const again = await later.start(["cat"], { id: "job", stdin: true });
    await again.write("two");
    await again.closeInput();
    let text = "";
    for await (const chunk of again) if ("data" in chunk) text += Buffer.from(chunk.data).toString();
    expect(text).toBe("one two");
    const ended = await again.wait();
    await later.process.deleteProcess({ process: { selector: { case: "id", value: "job" } } });
    expect(await again.wait()).toBe(ended);
  });

  it("ends following when it is closed", async () => {
    await using daemon = await startDaemon();
    const client = createClient({ url: daemon.url, token: TOKEN });
    const process = await client.start("sleep 1000");
    const waiting = process.wait();
    waiting.catch(() => undefined);
    client.close();
    await expect(waiting).rejects.toThrow("[canceled]");
  });
});
