import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { measureCalls } from "./measure-calls.mjs";

const LIMIT = "/proc/sys/fs/inotify/max_user_watches";

export const watches = {
  id: "watches",
  title: "watched directories",
  xs: [1, 10, 100, 1000, 10_000],
  calls: 200,
  panels: [
    { label: "p50, ms", series: { "write and its event": "eventP50Ms", Stat: "statP50Ms" } },
    { label: "daemon CPU, µs/call", series: { "write and its event": "eventCpuMicros", Stat: "statCpuMicros" } },
  ],
  prepare({ directory }) {
    const limit = Number(readFileSync(LIMIT, "utf8"));
    if (limit <= watches.xs.at(-1)) throw new Error(`${LIMIT} is only ${limit}`);
    const root = join(directory, "watched");
    mkdirSync(root);
    return { root, made: 0, measured: 0 };
  },
  async at(x, context, state) {
    for (; state.made < x; state.made++) mkdirSync(join(state.root, String(state.made)));
    const { seconds } = await context.client.run({ kind: "watch", path: state.root });
    const spread = { directories: x, stride: Math.max(1, Math.floor(x / context.calls)) };
    const event = await measureCalls(context, {
      kind: "event",
      count: context.calls,
      ...spread,
      name: `new-${state.measured++}`,
    });
    const stat = await measureCalls(context, { kind: "stat", count: context.calls * 5, path: context.directory });
    return {
      readyMs: seconds * 1000,
      eventP50Ms: event.p50Ms,
      eventCpuMicros: event.cpuMicros,
      statP50Ms: stat.p50Ms,
      statCpuMicros: stat.cpuMicros,
    };
  },
};
