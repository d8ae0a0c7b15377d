import { describe, expect, it } from "vitest";
import { OutputBudget } from "../../src/process/output-budget.js";
import { OutputLog } from "../../src/process/output-log.js";

/** Byte i of the stream is i modulo 251: what is read tells where it is from. */
function bytesOf(from: number, to: number): Buffer {
  return Buffer.from(Array.from({ length: to - from }, (_, index) => (from + index) % 251));
}

function push(log: OutputLog, length: number): void {
  log.push(bytesOf(log.end, log.end + length));
}

function expectKept(log: OutputLog, from: number, to: number): void {
  expect([log.keptFrom, log.end, log.keptBytes]).toEqual([from, to, to - from]);
  expect(log.read(from, to).equals(bytesOf(from, to))).toBe(true);
}

describe("OutputLog", () => {
  it("keeps the last part of what was written, whatever the sizes of the pieces", () => {
    for (const piece of [1, 7, 999, 1000, 1001, 2048, 5000]) {
      const log = new OutputLog(1000);
      for (let count = 0; count < 20; count++) {
        push(log, piece);
        expectKept(log, Math.max(0, log.end - 1000), (count + 1) * piece);
      }
    }
  });

  it("reads from any offset that is kept, over the end of its buffer, and no more than is asked for", () => {
    const log = new OutputLog(1000);
    for (let count = 0; count < 7; count++) push(log, 333);
    for (let offset = log.keptFrom; offset <= log.end; offset += 13) {
      expect(log.read(offset, 2000).equals(bytesOf(offset, log.end))).toBe(true);
      expect(log.read(offset, 5).equals(bytesOf(offset, Math.min(log.end, offset + 5)))).toBe(true);
    }
  });

  it("drops the oldest when its limit shrinks, and keeps more when it grows", () => {
    const log = new OutputLog(4096);
    push(log, 5000);
    log.setLimit(1024);
    expectKept(log, 5000 - 1024, 5000);
    log.setLimit(4096);
    push(log, 2000);
    expectKept(log, 5000 - 1024, 7000);
    log.compact();
    expectKept(log, 5000 - 1024, 7000);
  });

  it("drops nothing that it holds, neither for new bytes nor for a smaller limit", () => {
    const log = new OutputLog(1000);
    push(log, 600);
    log.holdFrom(500);
    log.setLimit(64);
    expectKept(log, 500, 600);
    push(log, 3000);
    expectKept(log, 500, 3600);
    log.holdFrom(Number.POSITIVE_INFINITY);
    push(log, 1);
    expectKept(log, 3601 - 64, 3601);
  });
});

describe("OutputBudget", () => {
  it("gives each log the same power of two, so that all of them together stay within it", () => {
    const budget = new OutputBudget(64 * 1024, 16 * 1024);
    const logs = Array.from({ length: 100 }, () => new OutputLog(budget.shareBytes));
    let largest = 0;
    for (const log of logs) {
      budget.join(log);
      push(log, 20_000);
      largest = Math.max(
        largest,
        logs.reduce((sum, each) => sum + each.keptBytes, 0),
      );
    }
    expect(largest).toBe(64 * 1024);
    expect(budget.shareBytes).toBe(512);
    for (const log of logs.slice(1)) budget.leave(log);
    expect(budget.shareBytes).toBe(16 * 1024);
  });
});
