import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { createClient, Outcome_Reason } from "../../src/client/index.js";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { SwitchedProxy } from "./switched-proxy.js";

/** A command that notes that it runs, and waits to be told to end; with its directory it ends too, whoever has started it. */
function noted(directory: string) {
  const [log, go] = [`${directory}/log`, `${directory}/go`];
  return {
    command: `echo ran >> ${log}; until [ -e ${go} ]; do [ -e ${log} ] || exit; sleep 0.02; done; echo done`,
    hasBegun: () => eventually("it runs", () => existsSync(log) && readFileSync(log, "utf8") !== ""),
    letEnd: () => writeFileSync(go, ""),
    runs: () => readFileSync(log, "utf8"),
  };
}

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error("expected an error");
    },
    (error: unknown) => ConnectError.from(error),
  );

describe("a command of the TypeScript client", () => {
  it("runs once and gives its result although the connection is cut while it runs", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    const { command, hasBegun, letEnd, runs } = noted(directory.path);
    const running = client.run(command);
    await hasBegun();
    proxy.cut();
    await daemon.waitForLog(({ procedure, code }) => procedure === "/picod.v1.ProcessService/Execute" && code === "canceled");
    letEnd();
    expect(await running).toMatchObject({ stdout: "done\n", exitCode: 0 });
    expect(runs()).toBe("ran\n");
  });

  it("is lost with its connection when it is not to be repeated", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    const { command, hasBegun, runs } = noted(directory.path);
    const failed = errorOf(client.run(command, { repeat: false }));
    await hasBegun();
    proxy.cut();
    await failed;
    expect(runs()).toBe("ran\n");
  });

  it("is not run again by a daemon that was restarted, and the error says why", async () => {
    using directory = temporaryDirectory();
    const first = await startDaemon();
    await using second = await startDaemon();
    using proxy = await SwitchedProxy.to(first.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    const { command, hasBegun, runs } = noted(directory.path);
    const failed = errorOf(client.run(command));
    await hasBegun();
    proxy.target = second.port;
    await first.stop("SIGKILL");
    proxy.cut();
    const error = await failed;
    expect([error.code, error.rawMessage]).toEqual([
      Code.Aborted,
      "the daemon was restarted after the connection broke: it is unknown whether what was asked for has run",
    ]);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "INSTANCE_CHANGED" }]);
    expect(runs()).toBe("ran\n");
    await expect(client.run("echo again")).resolves.toMatchObject({ stdout: "again\n" });
  });

  it("just runs when the daemon was restarted before it, and so do a start and a write", async () => {
    await using second = await startDaemon();
    using proxy = await SwitchedProxy.to(0);
    for (const call of ["run", "start"]) {
      await using first = await startDaemon();
      proxy.target = first.port;
      using client = createClient({ url: proxy.url, token: TOKEN });
      await client.run("true");
      // Its end closes the connection, too, and the client learns of that before it asks again.
      await first.stop();
      proxy.target = second.port;
      if (call === "run") await expect(client.run("echo on")).resolves.toMatchObject({ stdout: "on\n" });
      else {
        const process = await client.start("cat", { stdin: true });
        await process.write("on");
        await process.closeInput();
        expect((await process.wait()).outcome).toMatchObject({ reason: Outcome_Reason.EXITED });
      }
    }
  });

  it("just runs when the daemon comes up only after it was asked for", async () => {
    await using first = await startDaemon();
    using client = createClient({ url: first.url, token: TOKEN });
    await client.run("true");
    const { port } = first;
    await first.stop();
    const running = client.run("echo on");
    const again = await startDaemon({ args: ["--port", String(port)] });
    await expect(running).resolves.toMatchObject({ stdout: "on\n" });
    await again.stop();
  });

  it("is ended when nobody waits for it any longer, but not one with an id of the caller's", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
    const client = createClient({ url: daemon.url, token: TOKEN });
    const leave = new AbortController();
    const [forsaken, named, closed] = [
      errorOf(client.run(["sleep", "98101"], { signal: leave.signal })),
      errorOf(client.run(["sleep", "98102"], { signal: leave.signal, id: "mine" })),
      errorOf(client.run(["sleep", "98103"])),
    ];
    const isThere = (seconds: string) => processesNamed(seconds).length > 0;
    await eventually("they run", () => ["98101", "98102", "98103"].every(isThere));
    leave.abort();
    expect((await forsaken).code).toBe(Code.Canceled);
    expect((await named).code).toBe(Code.Canceled);
    await eventually("it is gone", () => !isThere("98101"));
    expect(["98102", "98103"].map(isThere)).toEqual([true, true]);
    client.close();
    expect((await closed).code).toBe(Code.Canceled);
    await eventually("it is gone", () => !isThere("98103"));
    expect(isThere("98102")).toBe(true);
  });
});

describe("the input of two writers of the TypeScript client", () => {
  it("arrives whole, every piece once, although their connections are cut", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using other = await SwitchedProxy.to(daemon.port);
    const clients = [proxy, other].map(({ url }) => createClient({ url, token: TOKEN }));
    const writers = [];
    for (const client of clients) writers.push(await client.start("cat", { id: "shared", stdin: true }));
    const pieces = writers.map((_, writer) =>
      Array.from({ length: 150 }, (_, index) => `${writer}:${index}:${"x".repeat(1000)}\n`),
    );
    const cutting = setInterval(() => {
      proxy.cut();
      other.cut();
    }, 100);
    await Promise.all(writers.map((writer, index) => Promise.all((pieces[index] ?? []).map((piece) => writer.write(piece)))));
    clearInterval(cutting);
    expect(proxy.cuts).toBeGreaterThan(1);
    await writers[0]?.closeInput();
    let text = "";
    for await (const chunk of writers[1] ?? []) if ("data" in chunk) text += Buffer.from(chunk.data).toString();
    expect(text.split("\n").toSorted()).toEqual([...pieces.flat().map((piece) => piece.trimEnd()), ""].toSorted());
    for (const client of clients) client.close();
  });
});

describe("back-pressure of the TypeScript client", () => {
  it("gives 100 MB, every byte once, although the connection is cut", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    const line = `${"0123456789".repeat(6)}\n`;
    const expected = Buffer.from(line.repeat(8192));
    const process = await client.start(`yes ${line.trimEnd()} | head -c 100000000`, { backpressure: true });
    let bytes = 0;
    for await (const chunk of process) {
      if (!("data" in chunk)) throw new Error("something was trimmed");
      const from = bytes % line.length;
      const isNext = chunk.offset === BigInt(bytes) && expected.subarray(from, from + chunk.data.length).equals(chunk.data);
      if (!isNext) throw new Error(`something else came at ${bytes}`);
      bytes += chunk.data.length;
      if (proxy.bytes > (proxy.cuts + 1) * 25_000_000) proxy.cut();
    }
    expect(bytes).toBe(100_000_000);
    expect(proxy.cuts).toBeGreaterThanOrEqual(3);
  });
});
