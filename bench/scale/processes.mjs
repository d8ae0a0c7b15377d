import { TRUE } from "../cases/exec.mjs";
import { TOKEN } from "../picod.mjs";
import { measureCalls } from "./measure-calls.mjs";

export const processes = {
  id: "processes",
  title: "live processes",
  xs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
  calls: 200,
  panels: [
    { label: "p50, ms", series: { Execute: "executeP50Ms", Stat: "statP50Ms" } },
    { label: "daemon CPU, µs/call", series: { Execute: "executeCpuMicros", Stat: "statCpuMicros" } },
  ],
  prepare: () => ({ started: 0 }),
  async at(x, context, state) {
    for (; state.started < x; state.started++) await startSleep(context.daemon);
    const execute = await measureCalls(context, { kind: "exec", count: context.calls, argv: TRUE });
    const stat = await measureCalls(context, { kind: "stat", count: context.calls * 5, path: context.directory });
    return {
      executeP50Ms: execute.p50Ms,
      executeCpuMicros: execute.cpuMicros,
      statP50Ms: stat.p50Ms,
      statCpuMicros: stat.cpuMicros,
    };
  },
};

/** It ends with the daemon. */
async function startSleep({ address }) {
  const response = await fetch(`http://${address}/v1/processes`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ command: "sleep", args: ["86400"] }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`cannot start a process: ${response.status} ${text}`);
}
