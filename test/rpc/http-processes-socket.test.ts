import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../helpers/eventually.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { call, create, ticketOf, view } from "./support/http-api.js";
import { exchange } from "./support/http1.js";

const SHELL = { pty: { rows: 24, cols: 80 }, command: "PS1='$ ' exec /bin/sh" };
const KUBERNETES = "v5.channel.k8s.io";
const NO_HEADERS = {};
/** Its declarations bring the DOM library with them, so it is used without. */
const ATTACH_ADDON: string = "@xterm/addon-attach";

/** The head of a handshake, as bytes. */
function handshake(path: string, headers: Record<string, string>): string {
  const all = { host: "x", connection: "Upgrade", upgrade: "websocket", authorization: `Bearer ${TOKEN}`, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`GET ${path} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`;
}

describe("a process on a WebSocket", () => {
  it("speaks raw bytes both ways and ends with an exit frame", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    using viewer = await view(daemon, id);
    expect(viewer.socket.protocol).toBe("");
    viewer.socket.send(Buffer.from("echo $((6*7))\n"));
    await viewer.shows("42\r\n");
    // Terminals send what is typed as text, braces included.
    viewer.socket.send('{ echo "braces"; }; echo {}\n');
    await viewer.shows(/\r\nbraces\r\n\{\}\r\n/);
    viewer.socket.send("exit 3\n");
    expect(await viewer.closed).toEqual({ code: 1000, reason: "" });
    expect(viewer.control).toEqual([
      { type: "exit", exit_code: 3, outcome: "exited", signal: null, message: expect.any(String) },
    ]);
  });

  it("carries bytes that are not text, in both directions", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "head", args: ["-c", "256"] });
    using viewer = await view(daemon, id);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    viewer.socket.send(bytes);
    await viewer.closed;
    expect(viewer.binary.equals(bytes)).toBe(true);
  });

  it("is what the attach addon of xterm.js expects", async () => {
    await using daemon = await startDaemon();
    using viewer = await view(daemon, await create(daemon, SHELL));
    let type: (text: string) => void = () => undefined;
    let written = "";
    const terminal = {
      onData(listener: typeof type) {
        type = listener;
        return { dispose: () => undefined };
      },
      onBinary: () => ({ dispose: () => undefined }),
      write(data: string | Uint8Array) {
        written += typeof data === "string" ? data : Buffer.from(data).toString();
      },
    };
    const { AttachAddon } = await import(ATTACH_ADDON);
    new AttachAddon(viewer.socket).activate(terminal);
    type("echo $((6*7))\n");
    await eventually("the terminal shows it", () => written.includes("42\r\n"));
  });

  it("takes size, signals and the end of input as text frames", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    using viewer = await view(daemon, id);
    viewer.socket.send(JSON.stringify({ type: "resize", rows: 12, cols: 34 }));
    viewer.socket.send("stty size\n");
    await viewer.shows("12 34\r\n");
    expect((await call(daemon, "GET", `/v1/processes/${id}`)).json.pty).toEqual({ rows: 12, cols: 34 });
    viewer.socket.send(JSON.stringify({ type: "signal", signal: "KILL" }));
    await viewer.closed;
    expect(viewer.control).toMatchObject([{ type: "exit", exit_code: 137, outcome: "signaled", signal: "SIGKILL" }]);
    using piped = await view(daemon, await create(daemon, { command: "cat; echo done" }));
    piped.socket.send(Buffer.from("input "));
    piped.socket.send(JSON.stringify({ type: "close_input" }));
    await piped.closed;
    expect(piped.text).toBe("input done\n");
  });

  it("tells of control that it cannot obey, and goes on", async () => {
    await using daemon = await startDaemon();
    using viewer = await view(daemon, await create(daemon, { command: "cat" }));
    viewer.socket.send(JSON.stringify({ type: "resize", rows: 1, cols: 1 }));
    viewer.socket.send(JSON.stringify({ type: "signal", signal: "SIGNONE" }));
    viewer.socket.send(JSON.stringify({ type: "resize", rows: -1 }));
    viewer.socket.send(Buffer.from("on"));
    await viewer.shows("on");
    const reasons = viewer.control.map(({ type, reason }) => [type, reason]);
    expect(reasons).toEqual([
      ["error", "NOT_A_TERMINAL"],
      ["error", "INVALID_ARGUMENT"],
      ["error", "INVALID_ARGUMENT"],
    ]);
  });

  it("refuses more input than may wait, and goes on", async () => {
    await using daemon = await startDaemon();
    using viewer = await view(daemon, await create(daemon, { command: "sleep 1000" }));
    for (let time = 0; time < 3; time++) viewer.socket.send(Buffer.alloc(1024 * 1024));
    await eventually("it is refused", () => viewer.control.some(({ reason }) => reason === "INPUT_QUEUE_FULL"));
    viewer.socket.send(Buffer.alloc(1024 * 1024 + 1));
    expect((await viewer.closed).code).toBe(1009);
  });

  it("is replayed from an offset after the connection is cut, and goes on", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    const first = await view(daemon, id);
    // What is typed before the prompt is echoed before it.
    await first.shows("$ ");
    first.socket.send("echo one\n");
    await first.shows("\r\none\r\n$ ");
    const seen = first.binary.length;
    first.socket.terminate();
    await call(daemon, "POST", `/v1/processes/${id}/input`, "echo two\n");
    using second = await view(daemon, id, { query: `?offset=${seen}` });
    await second.shows("\r\ntwo\r\n");
    expect(second.text).not.toContain("one");
    using whole = await view(daemon, id);
    await eventually("the whole is the sum of its parts", () => {
      return whole.text === first.text.slice(0, seen) + second.text && whole.text.includes("two");
    });
  });

  it("shows the same to many viewers, and all of them may type", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    using one = await view(daemon, id);
    using two = await view(daemon, id);
    one.socket.send("echo from-$((1))\n");
    await two.shows("from-1\r\n");
    two.socket.send("echo from-$((2))\n");
    await one.shows("from-2\r\n");
    two.socket.send("exit\n");
    expect([(await one.closed).code, (await two.closed).code]).toEqual([1000, 1000]);
    expect(one.text).toBe(two.text);
  });

  it("of one that has ended is replayed with its exit frame", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "echo out; echo errors >&2; exit 4" });
    using first = await view(daemon, id);
    await first.closed;
    using again = await view(daemon, id, { query: "?stream=stderr&offset=2" });
    again.socket.send(JSON.stringify({ type: "resize", rows: 1, cols: 1 }));
    await again.closed;
    expect(again.text).toBe("rors\n");
    expect(again.control.at(-1)).toMatchObject({ type: "exit", exit_code: 4 });
  });

  it("tells a viewer who falls behind what was trimmed, and keeps no memory for it", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "head -c 200000000 /dev/zero; sleep 1000" });
    using slow = await view(daemon, id);
    slow.socket.pause();
    await eventually("it has printed all", async () => {
      const { headers, body } = await call(daemon, "GET", `/v1/processes/${id}/output`);
      return Number(headers["picod-offset"]) + body.length === 200_000_000;
    });
    expect(daemon.rss()).toBeLessThan(300 * 1024 * 1024);
    slow.socket.resume();
    await eventually("it has caught up", () => {
      const skipped = slow.control.reduce((sum, { from, to }) => sum + to - from, 0);
      return skipped > 0 && skipped + slow.binary.length === 200_000_000;
    });
    expect(slow.control.every(({ type, stream }) => type === "trimmed" && stream === "stdout")).toBe(true);
  });

  it("ends for a viewer who falls behind when the protocol cannot tell of a gap", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "head -c 3000000 /dev/zero; read line; head -c 200000000 /dev/zero; sleep 1000" });
    const printed = async () => {
      const { headers, body } = await call(daemon, "GET", `/v1/processes/${id}/output`);
      return Number(headers["picod-offset"]) + body.length;
    };
    await eventually("it has printed some", async () => (await printed()) === 3_000_000);
    using slow = await view(daemon, id, { protocols: [KUBERNETES] });
    await eventually("what is kept is shown", () => slow.binary.length > 500_000);
    slow.socket.send(Buffer.from("\0\n"));
    slow.socket.pause();
    await eventually("it has printed all", async () => (await printed()) === 203_000_000);
    slow.socket.resume();
    expect(await slow.closed).toEqual({ code: 1013, reason: expect.stringMatching(/^stdout was trimmed at \d+$/) });
  });

  it("has room for 256 viewers", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 1000" });
    const viewers: Awaited<ReturnType<typeof view>>[] = [];
    for (let count = 0; count < 256; count++) viewers.push(await view(daemon, id));
    using another = await view(daemon, id);
    expect(await another.closed).toEqual({ code: 1013, reason: expect.stringContaining("it has 256 followers") });
    for (const viewer of viewers) viewer[Symbol.dispose]();
  });

  it("speaks the channels of Kubernetes", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "read line; echo got $line; echo errors >&2; cat; exit 7" });
    using viewer = await view(daemon, id, { protocols: [KUBERNETES] });
    expect(viewer.socket.protocol).toBe(KUBERNETES);
    viewer.socket.send(Buffer.from("\0hello\n"));
    viewer.socket.send(Buffer.of(255, 0));
    expect((await viewer.closed).code).toBe(1000);
    const channel = (number: number) =>
      Buffer.concat(viewer.messages.filter(([first]) => first === number).map((message) => message.subarray(1))).toString();
    expect(channel(1)).toBe("got hello\n");
    expect(channel(2)).toBe("errors\n");
    expect(JSON.parse(channel(3))).toEqual({
      metadata: {},
      status: "Failure",
      reason: "NonZeroExitCode",
      message: "command terminated with non-zero exit code: 7",
      details: { causes: [{ reason: "ExitCode", message: "7" }] },
    });
    expect(viewer.control).toEqual([]);
  });

  it("takes the size of Kubernetes' terminals, and closes when that is nonsense", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    using viewer = await view(daemon, id, { protocols: [KUBERNETES] });
    viewer.socket.send(Buffer.from('\u0004{"Width":55,"Height":66}'));
    viewer.socket.send(Buffer.from("\0stty size\n"));
    await viewer.shows("66 55\r\n");
    viewer.socket.send(Buffer.from("\u0004nonsense"));
    expect(await viewer.closed).toEqual({ code: 1008, reason: "invalid message: expected a JSON object" });
    expect((await call(daemon, "GET", `/v1/processes/${id}`)).json.status).toBe("running");
  });
});

describe("opening a WebSocket", () => {
  it("works once with a ticket and no header", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    const answer = await call(daemon, "POST", "/v1/tickets");
    expect([answer.status, answer.headers["cache-control"]]).toEqual([201, "no-store"]);
    const lifetime = Date.parse(answer.json.expires_at) - Date.now();
    expect(lifetime).toBeGreaterThan(20_000);
    expect(lifetime).toBeLessThan(31_000);
    const query = `?ticket=${answer.json.ticket}`;
    using viewer = await view(daemon, id, { query, headers: NO_HEADERS });
    viewer.socket.send("echo $((1+1))\n");
    await viewer.shows("2\r\n");
    await expect(view(daemon, id, { query, headers: NO_HEADERS })).rejects.toThrow(/^401 .*unauthenticated/);
    await daemon.waitForLog(({ code, procedure }) => code === "unauthenticated" && String(procedure).startsWith("GET "));
    expect(JSON.stringify(daemon.logs)).not.toContain(answer.json.ticket);
  });

  it.each<[string, string, Record<string, string>, RegExp]>([
    ["without a token", "", NO_HEADERS, /^401 .*unauthenticated/],
    ["with a wrong token", "", { authorization: "Bearer wrong" }, /^401 /],
    ["with the token in the query", `?ticket=${TOKEN}&token=${TOKEN}`, NO_HEADERS, /^401 /],
    ["with a ticket that nobody issued", `?ticket=${"a".repeat(32)}`, NO_HEADERS, /^401 /],
    [
      "from a page of elsewhere",
      "",
      { authorization: `Bearer ${TOKEN}`, origin: "http://elsewhere" },
      /^403 .*permission_denied/,
    ],
    ["from a page without an origin", "", { authorization: `Bearer ${TOKEN}`, origin: "null" }, /^403 /],
    ["with a negative offset", "?offset=-1", { authorization: `Bearer ${TOKEN}` }, /^400 .*INVALID_ARGUMENT/],
    ["with an offset beyond the end", "?offset=9999999", { authorization: `Bearer ${TOKEN}` }, /^400 .*OFFSET_BEYOND_END/],
    ["with a stream that it does not have", "?stream=stdout", { authorization: `Bearer ${TOKEN}` }, /^400 .*INVALID_ARGUMENT/],
  ])("is refused %s", async (_title, query, headers, refusal) => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    await expect(view(daemon, id, { query, headers })).rejects.toThrow(refusal);
    await expect(view(daemon, id, { query, headers })).rejects.toThrow(refusal);
  });

  it("is refused for an unknown process, and on a path that has none", async () => {
    await using daemon = await startDaemon();
    await expect(view(daemon, "proc_none")).rejects.toThrow(/^404 .*PROCESS_NOT_FOUND/);
    await expect(view(daemon, "a/b/c")).rejects.toThrow(/^404 /);
  });

  it("is allowed to a page of this host, and of the same host behind a proxy that ends TLS", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    for (const [origin, host] of [
      [daemon.url, `127.0.0.1:${daemon.port}`],
      ["https://sandbox.example", "sandbox.example"],
      ["https://sandbox.example", "sandbox.example:443"],
    ] as const) {
      const ticket = await ticketOf(daemon);
      using viewer = await view(daemon, id, { query: `?ticket=${ticket}`, headers: { origin, host } });
      expect(viewer.socket.readyState).toBe(WebSocket.OPEN);
    }
  });

  it("is refused with an answer of HTTP when the handshake is malformed", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    const path = `/v1/processes/${id}/connect`;
    const key = { "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    expect(await exchange(daemon, handshake(path, {}))).toMatch(/^HTTP\/1\.1 400 .*"code":"invalid_argument"/s);
    const old = await exchange(daemon, handshake(path, { ...key, "sec-websocket-version": "7" }));
    expect(old).toMatch(/^HTTP\/1\.1 400 .*invalid handshake/s);
    const none = await call(daemon, "GET", path);
    expect([none.status, none.headers.upgrade, none.json.code]).toEqual([426, "websocket", "failed_precondition"]);
  });

  it("leaves other offers of an upgrade unanswered, and their requests served", async () => {
    await using daemon = await startDaemon();
    for (const upgrade of ["h2c", "websocket"]) {
      const headers = { connection: "Upgrade", upgrade };
      expect((await call(daemon, "GET", "/v1/processes", undefined, headers)).json, upgrade).toEqual({ processes: [] });
      const executed = await call(daemon, "POST", "/picod.v1.ProcessService/Execute", { command: "echo hello" }, headers);
      expect(executed.json, upgrade).toMatchObject({ stdout: "hello\n" });
    }
  });
});

describe("WebSockets", () => {
  it("close with 1001 as soon as the daemon stops", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 1000" });
    using viewer = await view(daemon, id);
    using kubernetes = await view(daemon, id, { protocols: [KUBERNETES] });
    const started = performance.now();
    expect(await daemon.stop()).toBe(0);
    // The grace for calls is 10 s.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await viewer.closed).toEqual({ code: 1001, reason: "the daemon is shutting down" });
    expect((await kubernetes.closed).code).toBe(1001);
  });

  it("that are not answered do not hold a daemon that stops", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "cat /dev/zero" });
    using viewer = await view(daemon, id);
    viewer.socket.pause();
    const started = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("leave no descriptor and no call behind however they end", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, SHELL);
    const descriptors = daemon.descriptors();
    for (let round = 0; round < 40; round++) {
      const viewer = await view(daemon, id);
      if (round % 2 === 0) viewer.socket.terminate();
      else viewer.socket.close();
      await viewer.closed;
      const refused = new WebSocket(`${daemon.url.replace("http", "ws")}/v1/processes/${id}/connect`);
      await once(refused, "error");
    }
    await eventually("all descriptors are closed", () => daemon.descriptors() <= descriptors);
    const ended = () => daemon.logs.filter(({ procedure }) => procedure === "GET /v1/processes/{id}/connect");
    await eventually("all calls have ended", () => ended().length === 80);
    expect(ended().filter(({ code, processId }) => code === "ok" && processId === id)).toHaveLength(40);
  });
});
