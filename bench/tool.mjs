import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { TOKEN } from "./picod.mjs";
import { cpuSeconds } from "./process-stats.mjs";

const run = promisify(execFile);
/** More than it is asked to take. */
const LIMIT_MS = 60_000;

/** Lets another's client load a daemon. @throws Error when a request failed, or its report cannot be read. */
export async function runTool({ id, program, argv, parse, protocols }, daemon, { files, load }) {
  const address = protocols[daemon.protocolFamily] === "http2" ? (daemon.http2Address ?? daemon.address) : daemon.address;
  const url = `http://${address}/v1/files/${files.small}/0`;
  const headers = ["-H", `Authorization: Bearer ${TOKEN}`];
  const before = cpuSeconds(daemon.pids()).own;
  const { stdout } = await run(program, argv({ load, headers, url }), { timeout: LIMIT_MS });
  const cpu = cpuSeconds(daemon.pids()).own - before;
  const { failed, ...metrics } = parse(stdout);
  if (failed || !(metrics.perSecond > 0)) throw new Error(`${id} of ${daemon.name} failed:\n${stdout}`);
  return { ...metrics, cpuMicros: (cpu / metrics.requests) * 1e6 };
}
