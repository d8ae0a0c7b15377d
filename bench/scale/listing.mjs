import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peakMib, resetPeak } from "../process-stats.mjs";
import { measureCalls } from "./measure-calls.mjs";

/** So many entries are listed at each point, in as many calls as that takes. */
const ENTRIES_OF_A_JOB = 20_000;

export const listing = {
  id: "listing",
  title: "files in the listed directory",
  xs: [10, 100, 1000, 10_000, 100_000, 1_000_000],
  calls: 200,
  panels: [
    { label: "µs/entry", series: { time: "microsPerEntry", "daemon CPU": "cpuMicrosPerEntry" } },
    { label: "MiB", series: { "peak resident": "peakMib" } },
  ],
  prepare({ directory }) {
    const path = join(directory, "listed");
    mkdirSync(path);
    return { path, made: 0 };
  },
  async at(x, context, state) {
    for (; state.made < x; state.made++) writeFileSync(join(state.path, `file-${state.made}`), "");
    resetPeak(context.daemon.pids());
    const count = Math.max(1, Math.min(context.calls, ENTRIES_OF_A_JOB / x));
    const { p50Ms, cpuMicros } = await measureCalls(context, { kind: "list", count, path: state.path, entries: x });
    return {
      p50Ms,
      microsPerEntry: (p50Ms * 1000) / x,
      cpuMicrosPerEntry: cpuMicros / x,
      peakMib: peakMib(context.daemon.pids()),
    };
  },
};
