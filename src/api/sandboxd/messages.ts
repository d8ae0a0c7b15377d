import { PicodError } from "../../errors/picod-error.js";
import type { ProcessEnd } from "../../process/managed-process.js";
import type { OutputCollector } from "../../process/output-collector.js";

/** 4 MiB is what gRPC clients accept, less what is not output. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024 - 64;

/** -1 for whatever a signal ended: the contract has no place for its number. */
export function exitCode(end: ProcessEnd): number {
  return end.signal === undefined ? end.exitCode : -1;
}

/** Both streams within one answer: the shorter keeps what it has up to half of it, the longer takes the rest. */
export function toOutput(stdout: OutputCollector, stderr: OutputCollector) {
  const half = MAX_ANSWER_BYTES / 2;
  const [shorter, longer] = stdout.keptBytes < stderr.keptBytes ? [stdout, stderr] : [stderr, stdout];
  const first = shorter.toBytes(half, mark);
  const second = longer.toBytes(MAX_ANSWER_BYTES - first.length, mark);
  return shorter === stdout ? { stdout: first, stderr: second } : { stdout: second, stderr: first };
}

const mark = (omittedBytes: number) => `\n[picod: ${omittedBytes} bytes omitted]\n`;

/** A program that could not be started is an error here. */
export function failureToStart(what: string, end: ProcessEnd): PicodError {
  if (end.exitCode === 127) return new PicodError("PROGRAM_NOT_FOUND", `${what}: command or path not found: ${end.message}`);
  return new PicodError("PROGRAM_NOT_EXECUTABLE", `${what}: ${end.message}`);
}
