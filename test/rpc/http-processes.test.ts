import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:http2";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { call, create, readEvents } from "./support/http-api.js";
import { ask, openSocket } from "./support/http1.js";
import { leavesNothing } from "./support/leaves-nothing.js";

const PTY = { pty: { rows: 24, cols: 80 } };

/** Reads what follows as it comes. */
async function follow(daemon: Daemon, path: string, onText: (text: string) => unknown = () => undefined): Promise<string> {
  const response = await fetch(daemon.url + path, { headers: { authorization: `Bearer ${TOKEN}` } });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    onText(text);
  }
  return text;
}

async function hasEnded(daemon: Daemon, id: string): Promise<void> {
  await eventually("the process has ended", async () => {
    return (await call(daemon, "GET", `/v1/processes/${id}`)).json.status === "exited";
  });
}

describe("POST /v1/processes", () => {
  it("starts a process and shows it as an object", async () => {
    await using daemon = await startDaemon();
    const body = { command: "sleep", args: ["1000"], cwd: "/tmp", tag: "t", label: "a label", session_id: "s" };
    const { status, headers, json } = await call(daemon, "POST", "/v1/processes", body);
    expect(status).toBe(201);
    expect(headers.location).toBe(`/v1/processes/${json.id}`);
    expect(headers["x-request-id"]).toMatch(/./);
    expect(json).toEqual({
      id: expect.stringMatching(/^proc_/),
      tag: "t",
      label: "a label",
      command: "sleep",
      args: ["1000"],
      cwd: "/tmp",
      pid: expect.any(Number),
      pty: null,
      status: "running",
      exit_code: null,
      outcome: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      exited_at: null,
      session_id: "s",
    });
    expect(daemon.children()).toContain(json.pid);
    expect((await call(daemon, "GET", `/v1/processes/${json.id}`)).json).toEqual(json);
  });

  it("runs a line of shell without args, with environment, and ends it after its timeout", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "echo $A; sleep 1000", env: { A: "b" }, timeout_seconds: 0.2 });
    await hasEnded(daemon, id);
    expect((await call(daemon, "GET", `/v1/processes/${id}`)).json).toMatchObject({ exit_code: 124, outcome: "timed_out" });
    expect((await call(daemon, "GET", `/v1/processes/${id}/output`)).body).toBe("b\n");
  });

  it("gives a terminal of the size that was asked for, and the user's shell when there is no command", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { pty: { rows: 33, cols: 99 } });
    await call(daemon, "POST", `/v1/processes/${id}/input`, "stty size; exit 5\n");
    expect(await follow(daemon, `/v1/processes/${id}/output?follow=true`)).toContain("33 99\r\n");
    expect((await call(daemon, "GET", `/v1/processes/${id}`)).json).toMatchObject({ exit_code: 5, pty: { rows: 33, cols: 99 } });
  });

  it("is an object that has ended when the program does not exist", async () => {
    await using daemon = await startDaemon();
    const { status, json } = await call(daemon, "POST", "/v1/processes", { command: "no-such-program", args: [] });
    expect([status, json.status, json.exit_code, json.outcome]).toEqual([201, "exited", 127, "spawn_failed"]);
  });

  it("finds the process that was started with an id, and refuses another command with it", async () => {
    await using daemon = await startDaemon();
    expect(await create(daemon, { command: "sleep 1000", id: "mine" })).toBe("mine");
    expect(await create(daemon, { command: "sleep 1000", id: "mine" })).toBe("mine");
    expect(daemon.children()).toHaveLength(1);
    const other = await call(daemon, "POST", "/v1/processes", { command: "sleep 2000", id: "mine" });
    expect([other.status, other.json.code, other.json.reason]).toEqual([409, "already_exists", "PROCESS_ID_CONFLICT"]);
  });

  const json = { "content-type": "application/json" };
  it.each<[string, string | object, Record<string, string>, RegExp]>([
    ["a body that is not JSON", "{", json, /^invalid body: /],
    ["a body of another type", '{"command":"true"}', { "content-type": "text/plain" }, /expected application\/json$/],
    ["a body over the limit", `"${"x".repeat(4 * 1024 * 1024)}"`, json, /^invalid body: more than 4194304 bytes$/],
    ["an array", [], {}, /^invalid body: expected an object$/],
    ["no command", {}, {}, /^invalid command: it is missing$/],
    ["a command of another type", { command: 1 }, {}, /^invalid command: expected a string$/],
    ["args of another type", { command: "ls", args: "x" }, {}, /^invalid args: expected an array of strings$/],
    ["env of another type", { command: "ls", env: { A: 1 } }, {}, /^invalid env: expected an array of strings|env/],
    ["a NUL in env", { command: "ls", env: { A: "\0" } }, {}, /^invalid env: "A"/],
    ["a NUL in the command", { command: "ls \0" }, {}, /NUL/],
    ["a NUL in the arguments", { command: "ls", args: ["\0"] }, {}, /NUL/],
    ["a terminal without a size", { pty: {} }, {}, /^invalid pty: rows and cols are whole numbers from 1 to 65535$/],
    ["a terminal of no size", { pty: { rows: 0, cols: 80 } }, {}, /^invalid pty: /],
    ["a timeout below zero", { command: "ls", timeout_seconds: -1 }, {}, /^invalid timeout_seconds: /],
    ["an endless timeout", '{"command":"ls","timeout_seconds":1e999}', json, /^invalid timeout_seconds: /],
    ["an id with a slash", { command: "ls", id: "a/b" }, {}, /^invalid id: /],
    ["a long tag", { command: "ls", tag: "x".repeat(129) }, {}, /^invalid tag: longer than 128 bytes$/],
    ["a user who does not exist", { command: "ls", user: "nobody-at-all" }, {}, /nobody-at-all/],
  ])("refuses %s", async (_title, body, headers, message) => {
    await using daemon = await startDaemon();
    const { status, json: answer } = await call(daemon, "POST", "/v1/processes", body, headers);
    expect(answer).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
      reason: expect.any(String),
    });
    expect(status).toBe(400);
    expect((await call(daemon, "GET", "/v1/processes")).json).toEqual({ processes: [] });
  });
});

describe("GET /v1/processes", () => {
  it("filters by terminal, tag, status and session", async () => {
    await using daemon = await startDaemon();
    const ended = await create(daemon, { command: "true", session_id: "one" });
    const terminal = await create(daemon, { ...PTY, command: "sleep 1000", session_id: "one", tag: "shell" });
    const piped = await create(daemon, { command: "sleep 1000", session_id: "two" });
    await hasEnded(daemon, ended);
    const ids = async (query: string) => {
      const { json } = await call(daemon, "GET", `/v1/processes${query}`);
      return json.processes.map(({ id }: { id: string }) => id);
    };
    expect(await ids("")).toEqual([ended, terminal, piped]);
    expect(await ids("?pty=true")).toEqual([terminal]);
    expect(await ids("?pty=false&status=running")).toEqual([piped]);
    expect(await ids("?status=exited")).toEqual([ended]);
    expect(await ids("?tag=shell")).toEqual([terminal]);
    expect(await ids("?session_id=one")).toEqual([ended, terminal]);
    expect(await ids("?session_id=none")).toEqual([]);
  });
});

describe("a process by its id", () => {
  it("is ended and forgotten by DELETE, with TERM and then KILL", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
    const stubborn = await create(daemon, { command: "trap '' TERM; echo ready; while :; do sleep 1000; done" });
    await eventually("it ignores TERM", async () => (await call(daemon, "GET", `/v1/processes/${stubborn}/output`)).body !== "");
    const { status, json } = await call(daemon, "DELETE", `/v1/processes/${stubborn}`);
    expect(status).toBe(200);
    expect(json).toMatchObject({ id: stubborn, status: "exited", outcome: "cancelled", forced: true, surviving_processes: 0 });
    expect((await call(daemon, "GET", `/v1/processes/${stubborn}`)).status).toBe(404);
    expect(daemon.children()).toEqual([]);
  });

  it("takes signals by name and number", async () => {
    await using daemon = await startDaemon();
    for (const [signal, exitCode] of [
      ["SIGKILL", 137],
      ["TERM", 143],
      [1, 129],
    ] as const) {
      const id = await create(daemon, { command: "sleep", args: ["1000"] });
      expect((await call(daemon, "POST", `/v1/processes/${id}/signal`, { signal })).status).toBe(204);
      await hasEnded(daemon, id);
      expect((await call(daemon, "GET", `/v1/processes/${id}`)).json).toMatchObject({ exit_code: exitCode, outcome: "signaled" });
    }
  });

  it("takes input once however often it is sent with its offset, and its end", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "cat" });
    const path = `/v1/processes/${id}/input`;
    for (let time = 0; time < 3; time++) {
      expect((await call(daemon, "POST", `${path}?offset=0`, "one\n")).json).toEqual({ input_bytes: 4 });
    }
    expect((await call(daemon, "POST", `${path}?offset=2&close=true`, "e\ntwo\n")).json).toEqual({ input_bytes: 8 });
    expect(await follow(daemon, `/v1/processes/${id}/output?follow=true`)).toBe("one\ntwo\n");
  });

  it("takes input of any length at the pace at which it reads", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 0.2; wc -c" });
    const { json } = await call(daemon, "POST", `/v1/processes/${id}/input?close=true`, "x".repeat(20_000_000));
    expect(json).toEqual({ input_bytes: 20_000_000 });
    expect(await follow(daemon, `/v1/processes/${id}/output?follow=true`)).toBe("20000000\n");
    expect(daemon.rss()).toBeLessThan(200 * 1024 * 1024);
  });

  it("has a terminal that takes another size", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { ...PTY, command: "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done" });
    const followed = follow(daemon, `/v1/processes/${id}/output?follow=true`);
    await eventually("it waits", async () => (await call(daemon, "GET", `/v1/processes/${id}/output`)).body.includes("ready"));
    expect((await call(daemon, "POST", `/v1/processes/${id}/resize`, { rows: 11, cols: 22 })).status).toBe(204);
    expect(await followed).toContain("11 22");
  });

  it.each<[string, string, string, object | string | undefined, number, string]>([
    ["GET", "", "an unknown id", undefined, 404, "PROCESS_NOT_FOUND"],
    ["DELETE", "", "an unknown id", undefined, 404, "PROCESS_NOT_FOUND"],
    ["POST", "/signal", "an unknown id", { signal: "TERM" }, 404, "PROCESS_NOT_FOUND"],
    ["POST", "/resize", "an unknown id", PTY.pty, 404, "PROCESS_NOT_FOUND"],
    ["POST", "/input", "an unknown id", "x", 404, "PROCESS_NOT_FOUND"],
    ["GET", "/output", "an unknown id", undefined, 404, "PROCESS_NOT_FOUND"],
  ])("%s %s refuses %s", async (method, rest, _title, body, status, reason) => {
    await using daemon = await startDaemon();
    const answer = await call(daemon, method, `/v1/processes/proc_none${rest}`, body);
    expect([answer.status, answer.json.code, answer.json.reason]).toEqual([status, "not_found", reason]);
  });

  it("refuses what it cannot do, and says why", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "echo out; echo errors >&2; exec sleep 1000", stdin: false });
    const ended = await create(daemon, { command: "true" });
    await hasEnded(daemon, ended);
    await eventually("it has printed", async () => (await call(daemon, "GET", `/v1/processes/${id}/output`)).body !== "");
    const refusals = async (method: string, path: string, body?: object | string) => {
      const { status, json } = await call(daemon, method, `/v1/processes/${path}`, body);
      return [status, json.reason];
    };
    expect(await refusals("POST", `${id}/resize`, PTY.pty)).toEqual([400, "NOT_A_TERMINAL"]);
    expect(await refusals("POST", `${id}/resize`, { rows: "x" })).toEqual([400, "INVALID_ARGUMENT"]);
    expect(await refusals("POST", `${id}/signal`, { signal: "SIGNONE" })).toEqual([400, "INVALID_ARGUMENT"]);
    expect(await refusals("POST", `${id}/signal`, {})).toEqual([400, "INVALID_ARGUMENT"]);
    expect(await refusals("POST", `${ended}/signal`, { signal: "TERM" })).toEqual([400, "PROCESS_ENDED"]);
    expect(await refusals("POST", `${id}/input`, "x")).toEqual([400, "INPUT_CLOSED"]);
    expect(await refusals("GET", `${id}/output?offset=5`)).toEqual([400, "OFFSET_BEYOND_END"]);
    expect(await refusals("GET", `${id}/output?offset=-1`)).toEqual([400, "INVALID_ARGUMENT"]);
    expect(await refusals("GET", `${id}/output?stream=pty`)).toEqual([400, "INVALID_ARGUMENT"]);
    expect(await refusals("GET", `${id}/output?follow=true&offset=5`)).toEqual([400, "OFFSET_BEYOND_END"]);
    expect(await refusals("DELETE", "..%2F..")).toEqual([404, "PROCESS_NOT_FOUND"]);
  });

  it("names the methods that its paths take", async () => {
    await using daemon = await startDaemon();
    const patch = await call(daemon, "PATCH", "/v1/processes/x");
    expect([patch.status, patch.headers.allow]).toEqual([405, "GET, HEAD, DELETE"]);
    const get = await call(daemon, "GET", "/v1/processes/x/signal");
    expect([get.status, get.headers.allow]).toEqual([405, "POST"]);
    expect((await call(daemon, "GET", "/v1/none")).status).toBe(404);
  });

  it("answers HEAD with the headers of GET, also where GET would follow", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 1000" });
    for (const path of [`/v1/processes/${id}`, `/v1/processes/${id}/output?follow=true`, "/v1/events"]) {
      const { status, body } = await call(daemon, "HEAD", path);
      expect([status, body], path).toEqual([200, ""]);
    }
  });
});

describe("GET …/output", () => {
  it("is one stream from an offset on", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "printf 0123456789; printf errors >&2" });
    await hasEnded(daemon, id);
    const read = async (query: string) => (await call(daemon, "GET", `/v1/processes/${id}/output${query}`)).body;
    expect(await read("")).toBe("0123456789");
    expect(await read("?stream=stdout&offset=4")).toBe("456789");
    expect(await read("?offset=10")).toBe("");
    expect(await read("?stream=stderr")).toBe("errors");
    expect(await read("?stream=stderr&offset=3&follow=true")).toBe("ors");
  });

  it("tells where it begins when the beginning is no longer kept", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "head -c 3000000 /dev/zero; printf end" });
    await hasEnded(daemon, id);
    const { headers, body: text } = await call(daemon, "GET", `/v1/processes/${id}/output`);
    expect(Number(headers["picod-offset"]) + text.length).toBe(3_000_003);
    expect(text.endsWith("end")).toBe(true);
    const followed = await call(daemon, "GET", `/v1/processes/${id}/output?follow=true`);
    expect([followed.headers["picod-offset"], followed.body.length]).toEqual([headers["picod-offset"], text.length]);
  });

  it("comes as it is printed when it is followed", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "echo one; read line; echo two" });
    let answered: Promise<unknown> | undefined;
    const text = await follow(daemon, `/v1/processes/${id}/output?follow=true`, (sofar) => {
      if (sofar === "one\n") answered = call(daemon, "POST", `/v1/processes/${id}/input`, "\n");
    });
    expect(text).toBe("one\ntwo\n");
    await answered;
  });

  it("is what was printed, byte by byte, for a reader that comes late and reads in small pieces", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "seq 100000 240000; seq 9 >&2" });
    await hasEnded(daemon, id);
    const socket = await openSocket(daemon);
    socket.write(`GET /v1/processes/${id}/output?follow=true HTTP/1.0\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) {
      text += chunk.toString();
      await setImmediate();
    }
    const numbers = Array.from({ length: 140_001 }, (_, index) => `${100_000 + index}\n`);
    expect(text.slice(text.indexOf("\r\n\r\n") + 4) === numbers.join("")).toBe(true);
  });

  it("is served to curl over both protocol versions", async () => {
    await using daemon = await startDaemon();
    const curl = async (...args: string[]) => {
      const { stdout } = await promisify(execFile)("curl", ["-sS", "-H", `Authorization: Bearer ${TOKEN}`, ...args]);
      return stdout;
    };
    for (const version of ["--http1.1", "--http2", "--http2-prior-knowledge"]) {
      const body = ["-H", "Content-Type: application/json", "-d", '{"command":"cat; echo done"}'];
      const { id } = JSON.parse(await curl(version, ...body, `${daemon.url}/v1/processes`));
      const url = `${daemon.url}/v1/processes/${id}`;
      expect(JSON.parse(await curl(version, "-T", "/etc/hostname", "-X", "POST", `${url}/input?close=true`))).toHaveProperty(
        "input_bytes",
      );
      expect(await curl(version, `${url}/output?follow=true`), version).toMatch(/.\ndone\n$/);
      expect(await curl(version, "-o", "/dev/null", "-w", "%{http_code}", `${url}/connect`)).toBe("426");
      expect(JSON.parse(await curl(version, "-X", "DELETE", url))).toMatchObject({ status: "exited" });
      expect(JSON.parse(await curl(version, url))).toMatchObject({ code: "not_found", reason: "PROCESS_NOT_FOUND" });
    }
  });
});

describe("GET /v1/events", () => {
  it("tells what happens to processes", async () => {
    await using daemon = await startDaemon();
    const events = await readEvents(
      daemon,
      (sofar) => sofar.some(({ event }) => event === "process.deleted"),
      {},
      async () => {
        const id = await create(daemon, { command: "exit 3", tag: "job" });
        await hasEnded(daemon, id);
        await call(daemon, "DELETE", `/v1/processes/${id}`);
      },
    );
    expect(events.map(({ event }) => event)).toEqual(["process.created", "process.exited", "process.deleted"]);
    expect(events[0]?.data).toMatchObject({ status: "running", tag: "job", exit_code: null });
    expect(events[1]?.data).toMatchObject({ status: "exited", exit_code: 3, id: events[0]?.data.id });
    expect(events[2]?.data).toMatchObject({ id: events[0]?.data.id });
  });

  it("continues behind the last event that a reader has seen", async () => {
    await using daemon = await startDaemon();
    const first = await readEvents(
      daemon,
      (sofar) => sofar.length === 1,
      {},
      () => create(daemon, { command: "sleep 1000", id: "a" }),
    );
    await create(daemon, { command: "sleep 1000", id: "b" });
    await create(daemon, { command: "sleep 1000", id: "c" });
    const missed = await readEvents(daemon, (sofar) => sofar.length === 2, { "last-event-id": first[0]?.id ?? "" });
    expect(missed.map(({ event, data }) => [event, data.id])).toEqual([
      ["process.created", "b"],
      ["process.created", "c"],
    ]);
  });

  it("cuts a reader off that takes nothing, and keeps no memory for it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await create(daemon, { command: "sleep 1000" });
    const socket = await openSocket(daemon);
    socket.write(`GET /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`);
    await new Promise((resolve) => socket.once("readable", resolve));
    const isCut = () => daemon.logs.some(({ procedure }) => procedure === "GET /v1/events");
    const process = { selector: { case: "id" as const, value: id } };
    const label = "x".repeat(1024);
    const update = () => clients.process.updateProcess({ process, label });
    for (let count = 0; count < 20_000 && !isCut(); count += 50) await Promise.all(Array.from({ length: 50 }, update));
    expect(isCut()).toBe(true);
    expect(daemon.rss()).toBeLessThan(250 * 1024 * 1024);
    socket.destroy();
  });

  it("tells a reader of an earlier daemon that something was lost", async () => {
    await using earlier = await startDaemon();
    const [seen] = await readEvents(
      earlier,
      (sofar) => sofar.length === 1,
      {},
      () => create(earlier, { command: "true" }),
    );
    await earlier.stop();
    await using daemon = await startDaemon();
    await create(daemon, { command: "sleep 1000", id: "a" });
    const events = await readEvents(daemon, (sofar) => sofar.length === 2, { "last-event-id": seen?.id ?? "" });
    expect(events.map(({ event }) => event)).toEqual(["history.lost", "process.created"]);
    // The clock may have been set back in between.
    const ahead = { "last-event-id": String(Number(seen?.id) + 1e12) };
    const again = await readEvents(daemon, (sofar) => sofar.length === 2, ahead);
    expect(again.map(({ event }) => event)).toEqual(["history.lost", "process.created"]);
  });
});

describe("plain HTTP", () => {
  it("takes the token in the header alone", async () => {
    await using daemon = await startDaemon();
    const { ticket } = (await call(daemon, "POST", "/v1/tickets")).json;
    for (const query of [`?access_token=${TOKEN}`, `?token=${TOKEN}`, `?ticket=${ticket}`, `?ticket=${TOKEN}`]) {
      for (const path of ["/v1/processes", "/v1/events", "/v1/processes/x/output", "/v1/processes/x/connect"]) {
        expect((await ask(daemon, path + query)).status, path + query).toBe(401);
        const upgrade = { connection: "Upgrade", upgrade: "websocket" };
        if (!path.endsWith("connect")) expect((await ask(daemon, path + query, { headers: upgrade })).status).toBe(401);
      }
    }
    expect((await call(daemon, "GET", "/v1/processes", undefined, { authorization: "Bearer wrong" })).status).toBe(401);
  });

  it("is logged and counted by its routes, without what callers put into paths and queries", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "true" });
    await call(daemon, "GET", `/v1/processes/${id}?secret=1`);
    await call(daemon, "GET", "/v1/processes/none");
    const line = await daemon.waitForLog(({ code, procedure }) => code === "ok" && procedure === "GET /v1/processes/{id}");
    expect(line).toMatchObject({ processId: id, bytesOut: expect.any(Number), durationMs: expect.any(Number) });
    await daemon.waitForLog(({ code, procedure }) => code === "not_found" && procedure === "GET /v1/processes/{id}");
    const { body: text } = await call(daemon, "GET", "/metrics");
    expect(text).toContain('picod_rpc_total{procedure="GET /v1/processes/{id}",code="ok"} 1');
    expect(JSON.stringify(daemon.logs)).not.toContain("secret");
    expect(daemon.logs.every(({ level }) => level === "info")).toBe(true);
  });

  it("ends its streams as soon as the daemon stops", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "echo begun; sleep 1000" });
    let opened = 0;
    const events = readEvents(
      daemon,
      () => false,
      {},
      () => opened++,
    );
    const output = follow(daemon, `/v1/processes/${id}/output?follow=true`, () => opened++).catch((error: Error) => error);
    await eventually("both are open", () => opened === 2);
    const started = performance.now();
    expect(await daemon.stop()).toBe(0);
    // The grace for calls is 10 s.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await events).toEqual([]);
    // It is cut, not ended: the process might have said more.
    expect(await output).toBeInstanceOf(Error);
  });

  it("answers a caller who is still sending when the daemon stops", async () => {
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "200ms"] });
    const id = await create(daemon, { command: "cat" });
    const send = async (path: string, body: string) => {
      const socket = (await openSocket(daemon)).setEncoding("utf8");
      let received = "";
      socket.on("data", (text: string) => {
        received += text;
      });
      const head = [`POST ${path} HTTP/1.1`, "host: x", `authorization: Bearer ${TOKEN}`, "content-type: application/json"];
      socket.write(`${[...head, "content-length: 1000"].join("\r\n")}\r\n\r\n${body}`);
      return new Promise<string>((resolve) => socket.once("close", () => resolve(received)));
    };
    const answers = Promise.all([send(`/v1/processes/${id}/input`, "some"), send("/v1/processes", "{")]);
    await eventually("some has arrived", async () => (await call(daemon, "GET", `/v1/processes/${id}/output`)).body === "some");
    const started = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - started).toBeLessThan(5_000);
    for (const answer of await answers) expect(answer).toMatch(/^HTTP\/1\.1 503 .*"code":"unavailable"/s);
  });

  it("ends its streams over HTTP/2 when their caller leaves", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 1000" });
    for (const path of ["/v1/events", `/v1/processes/${id}/output?follow=true`]) {
      const session = connect(daemon.url);
      const stream = session.request({ ":path": path, authorization: `Bearer ${TOKEN}` });
      const [headers] = await once(stream, "response");
      expect(headers[":status"]).toBe(200);
      session.destroy();
      await daemon.waitForLog(
        ({ procedure, code }) => code === "canceled" && String(procedure).startsWith(`GET ${path.slice(0, 8)}`),
      );
    }
  });

  it("leaves nothing behind when callers leave", async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "sleep 1000" });
    const head = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`;
    const paths = ["/v1/events", `/v1/processes/${id}/output?follow=true`];
    const descriptors = daemon.descriptors();
    for (let round = 0; round < 50; round++) {
      for (const path of paths) {
        const socket = await openSocket(daemon);
        socket.write(head(path));
        if (round % 2 === 0) await new Promise((resolve) => socket.once("data", resolve));
        socket.destroy();
      }
    }
    await eventually("all descriptors are closed", () => daemon.descriptors() <= descriptors);
    await eventually("all calls have ended", () => daemon.logs.filter(({ msg }) => msg === "call ended").length === 101);
    await call(daemon, "DELETE", `/v1/processes/${id}`);
    await leavesNothing(daemon, async () => {
      for (let round = 0; round < 20; round++) {
        const other = await create(daemon, { ...PTY, command: "echo hello" });
        await hasEnded(daemon, other);
        await call(daemon, "DELETE", `/v1/processes/${other}`);
      }
    });
  });
});
