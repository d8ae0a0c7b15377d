import { memory } from "../process-stats.mjs";
import { measureCalls } from "./measure-calls.mjs";

export const connections = {
  id: "connections",
  title: "open connections",
  xs: [1, 10, 100, 200, 500, 1000, 2000],
  calls: 1000,
  panels: [
    { label: "Stat, µs", series: { p50: "statP50Micros", "daemon CPU": "statCpuMicros" } },
    { label: "MiB", series: { resident: "residentMib" } },
  ],
  prepare: () => ({}),
  /** The client's own connection counts. */
  async at(x, context, state) {
    await context.client.run({ kind: "hold", count: x - 1, path: context.directory });
    const stat = await measureCalls(context, { kind: "stat", count: context.calls, path: context.directory });
    const { residentMib } = memory(context.daemon.pids());
    if (x === 1) state.residentMibOfOne = residentMib;
    const more = x > 1 ? { kibPerConnection: ((residentMib - state.residentMibOfOne) * 1024) / (x - 1) } : {};
    return { statP50Micros: stat.p50Ms * 1000, statCpuMicros: stat.cpuMicros, residentMib, ...more };
  },
};
