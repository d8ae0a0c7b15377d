import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AuditFile } from "../../src/audit/audit-file.js";
import { type AuditVerifyFlags, auditVerify } from "../../src/cli/audit-verify.js";
import { eventually } from "../helpers/eventually.js";
import { runPicod } from "../helpers/run-picod.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
const FLAGS: AuditVerifyFlags = { expect: [], complete: false, json: false };
const ROTATING = ["--audit-log-max-bytes", "1KiB", "--audit-log-files", "50"];

async function call(daemon: Daemon, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await fetch(`${daemon.url}/v1/processes`, { headers: AUTHORIZATION });
}

function verify(paths: readonly string[], flags: Partial<AuditVerifyFlags> = {}): { exitCode: number; printed: string } {
  let printed = "";
  const exitCode = auditVerify(paths, { ...FLAGS, ...flags }, (text) => {
    printed += text;
  });
  return { exitCode, printed };
}

/** Lines with their ends. */
function linesOf(path: string): string[] {
  return readFileSync(path, "utf8").match(/.*\n|.+$/g) ?? [];
}

/** A line as its author would have made it. */
function rehashed(line: string): string {
  const hashed = line.slice(0, line.lastIndexOf(',"hash":"'));
  return `${hashed},"hash":"${createHash("sha256").update(hashed).digest("hex")}"}\n`;
}

/** The log of a daemon that has answered some calls and was stopped. */
async function writtenLog(path: string, args: readonly string[] = [], calls = 10): Promise<Daemon> {
  const daemon = await startDaemon({ args: ["--audit-log", path, ...args] });
  await call(daemon, calls);
  expect(await daemon.stop()).toBe(0);
  return daemon;
}

describe("the chain of audit lines", () => {
  it("goes on across rotation, SIGHUP, restarts, a KILL and a line that was cut", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const first = await startDaemon({ args: ["--audit-log", log] });
    await call(first, 5);
    await eventually("lines are there", () => existsSync(log) && linesOf(log).length > 0);
    renameSync(log, join(directory.path, "moved.jsonl"));
    first.child.kill("SIGHUP");
    await eventually("the file is there again", () => existsSync(log));
    await call(first, 5);
    expect(await first.stop()).toBe(0);
    const args = ["--audit-log", log, ...ROTATING];
    const second = await startDaemon({ args });
    await call(second, 40);
    await eventually("it was rotated", () => existsSync(`${log}.2`));
    await second.stop("SIGKILL");
    appendFileSync(log, '{"time":"2026-01-01T00:00:00.000Z","event":"ca');
    expect(verify([log])).toMatchObject({ exitCode: 1, printed: expect.stringContaining("has no end") });
    const third = await startDaemon({ args });
    await call(third, 5);
    expect(await third.stop()).toBe(0);

    const moved = join(directory.path, "moved.jsonl");
    expect(verify([moved, log], { complete: true })).toMatchObject({ exitCode: 0 });
    expect(verify([log], { complete: true })).toMatchObject({ exitCode: 1, printed: expect.stringMatching(/^the beginning is/) });
    const all = readdirSync(directory.path).flatMap((name) => linesOf(join(directory.path, name)));
    const torn = all.filter((line) => line.includes('"event":"torn_line"')).map((line) => JSON.parse(line));
    expect(torn).toMatchObject([{ bytes: 46, text: '{"time":"2026-01-01T00:00:00.000Z","event":"ca' }]);
  });

  it("is left alone by a second daemon that is given the same file, until the first has ended", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const first = await startDaemon({ args: ["--audit-log", log] });
    await call(first, 1);
    const second = await startDaemon({ args: ["--audit-log", log] });
    const complaint = await second.waitForLog(({ msg }) => msg === "cannot write the audit log");
    expect(complaint).toMatchObject({ err: { message: `another process has locked ${log}` } });
    await call(second, 3);
    await call(first, 3);
    expect(await first.stop()).toBe(0);
    await second.waitForLog(({ msg }) => msg === "audit log head");
    expect(await second.stop()).toBe(0);
    expect(verify([log], { complete: true }).printed).toMatch(/^ok: 11 lines/);
  });

  it("says when what was there at the start was not a daemon's", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    writeFileSync(log, "something else\n");
    const daemon = await writtenLog(log);
    expect(daemon.logs.map(({ msg }) => msg)).toContain("the audit log does not end with a line that a daemon has written");
    expect(verify([log])).toEqual({ exitCode: 1, printed: `${log}:1: the line is not one of the chain\n` });
  });

  it("has each line once after an end in the middle of a write", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    let written = 0;
    const count = (lines: number) => {
      written += lines;
    };
    const ignore = () => undefined;
    const counts = { onWritten: count, onLost: count, onError: ignore, onContinued: ignore };
    const file = new AuditFile({ path: log, maxBytes: 0, keptFiles: 1, ...counts });
    const record = JSON.stringify({ event: "call", text: "x".repeat(100_000) });
    file.append(record);
    await eventually("the first is written", () => written === 1);
    for (let number = 0; number < 20; number++) file.append(record);
    // In the next turn a thread of the pool is at it.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    file.flushNow();
    expect(verify([log], { complete: true }).printed).toMatch(/^ok: 21 lines/);
    await file.close();
  });
});

const TAMPERINGS: readonly (readonly [string, (lines: string[]) => string[], line: number, why: string])[] = [
  ["a change", (lines) => lines.with(4, lines[4]?.replace('"token"', '"jwt"') ?? ""), 5, "was changed"],
  ["a change of a byte that is not of the text", (lines) => lines.with(4, `\0${lines[4]}`), 5, "was changed"],
  ["a change of the last line", (lines) => lines.with(-1, lines.at(-1)?.replace("stopped", "halted") ?? ""), 12, "was changed"],
  [
    "a change with its hash made anew",
    (lines) => lines.with(4, rehashed(lines[4]?.replace('"token"', '"jwt"') ?? "")),
    6,
    "does not follow from the line before it, which was replaced",
  ],
  ["a line taken out", (lines) => lines.toSpliced(4, 1), 5, "is number 6 and follows number 4: lines between them are missing"],
  ["a line put in", (lines) => lines.toSpliced(4, 0, '{"event":"call"}\n'), 5, "is not one of the chain"],
  [
    "a line put in twice",
    (lines) => lines.toSpliced(4, 0, lines[4] ?? ""),
    6,
    "is number 5 and follows number 5: it was moved here, or is there twice",
  ],
  [
    "two lines in each other's place",
    (lines) => lines.with(4, lines[5] ?? "").with(5, lines[4] ?? ""),
    5,
    "is number 6 and follows number 4: lines between them are missing",
  ],
  ["another log's lines behind them", (lines) => [...lines, lines[0] ?? ""], 13, "begins a chain of its own"],
  ["an end in the middle of a line", (lines) => lines.with(-1, lines.at(-1)?.slice(0, -1) ?? ""), 12, "has no end"],
];

describe("picod audit verify", () => {
  it("finds the first line that is not what was written", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    await writtenLog(log);
    const lines = linesOf(log);
    expect(verify([log]).printed).toMatch(/^ok: 12 lines, numbers 1 to 12, head [0-9a-f]{64}\n$/);
    for (const [title, tamper, line, why] of TAMPERINGS) {
      writeFileSync(log, tamper(lines).join(""));
      const { exitCode, printed } = verify([log]);
      expect([exitCode, printed], title).toEqual([1, expect.stringContaining(`${log}:${line}: the line ${why}`)]);
    }
  });

  it("finds an end that was cut off, or a log that was made anew, by what the daemon's own log said", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const daemon = await writtenLog(log);
    const told = daemon.logs.filter(({ msg }) => msg === "audit log head").map(({ seq, hash }) => ({ seq, hash: String(hash) }));
    expect(told[0]).toEqual({ seq: 0, hash: "0".repeat(64) });
    const { seq, hash } = told.at(-1) ?? {};
    expect(seq).toBe(12);
    expect(verify([log], { expect: [hash ?? ""] })).toMatchObject({ exitCode: 0 });
    writeFileSync(log, linesOf(log).slice(0, -2).join(""));
    expect(verify([log])).toMatchObject({ exitCode: 0 });
    const found = verify([log], { expect: [hash ?? ""], json: true });
    expect(found.exitCode).toBe(1);
    expect(JSON.parse(found.printed)).toMatchObject({ ok: false, lines: 10, firstSeq: 1, head: { seq: 10 }, firstBad: null });
    expect(JSON.parse(found.printed).faults).toEqual([expect.stringContaining(`no line has the hash ${hash}`)]);
  });

  it("takes what was rotated away first, and finds a file that is missing", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    await writtenLog(log, ROTATING, 60);
    expect(existsSync(`${log}.3`)).toBe(true);
    expect(verify([log], { complete: true }).printed).toMatch(/^ok: 62 lines, numbers 1 to 62/);
    expect(verify([`${log}.2`])).toMatchObject({ exitCode: 0 });
    rmSync(`${log}.2`);
    const { exitCode, printed } = verify([log]);
    expect([exitCode, printed]).toEqual([
      1,
      expect.stringMatching(/jsonl\.1:1: the line is number \d+ and follows number \d+: lines/),
    ]);
  });

  it("says so by its exit code", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    await writtenLog(log);
    const good = await runPicod(["audit", "verify", log, "--json"]);
    expect(good).toMatchObject({ ended: 0, stderr: "" });
    expect(JSON.parse(good.stdout)).toMatchObject({ ok: true, lines: 12, firstSeq: 1, firstBad: null, faults: [] });
    writeFileSync(log, linesOf(log).toSpliced(4, 1).join(""));
    expect(await runPicod(["audit", "verify", log])).toMatchObject({ ended: 1, stdout: expect.stringMatching(/:5: /) });
    const bad = JSON.parse((await runPicod(["audit", "verify", log, "--json"])).stdout);
    expect(bad).toMatchObject({ ok: false, lines: 4, firstBad: { file: log, line: 5 } });
    const missing = await runPicod(["audit", "verify", `${log}.missing`]);
    expect(missing).toMatchObject({
      ended: 2,
      stdout: "",
      stderr: expect.stringMatching(/^picod: cannot read the audit log: ENOENT/),
    });
    expect(await runPicod(["audit", "verify", log, "--expect", "abc"])).toMatchObject({ ended: 2 });
  });
});
