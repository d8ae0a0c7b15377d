import { TRUE } from "./exec.mjs";
import { CPU, CPU_OF_ALL, GRPC, HTTP_FILES, P99, PEAK, RATE, THROUGHPUT } from "./figures.mjs";

/** Loads, and what a caller on another connection sees meanwhile: a stalled event loop looks the same for every daemon. */

const LINE_INTERVAL_MS = 100;

const PROBE = [
  { metric: "probeP50Ms", label: "p50 beside it, ms" },
  { metric: "probeP99Ms", label: "p99 beside it, ms" },
  { metric: "probeMaxMs", label: "slowest beside it, ms" },
  { metric: "loopDelayBeforeMs", label: "latest timer of picod before, ms" },
  { metric: "loopDelayMs", label: "latest timer of picod meanwhile, ms" },
];

const stat = ({ files }) => ({ path: files.text });
/** nginx runs nothing. */
const execute = ({ files, peer }) => (peer === "nginx" ? stat({ files }) : { argv: TRUE });

export const loads = [
  {
    id: "exec-64",
    name: "exec at concurrency 64, beside it Stat, gRPC",
    kind: "exec",
    protocols: GRPC,
    job: ({ load }) => ({ count: load.manyExecs, concurrency: 64, argv: TRUE }),
    probe: stat,
    figures: [RATE, P99, CPU, ...PROBE],
    goals: {},
  },
  fair("fair-64", "download", "64 downloads of 16 MiB at once, beside them Execute, gRPC", GRPC),
  fair("fair-64-http", "download", "64 downloads of 16 MiB at once, beside them Execute, plain HTTP", HTTP_FILES),
  fair("fair-64-upload", "upload", "64 uploads of 16 MiB at once, beside them Execute, gRPC", GRPC),
  fair("fair-64-upload-http", "upload", "64 uploads of 16 MiB at once, beside them Execute, plain HTTP", HTTP_FILES),
  {
    id: "lines",
    name: "100 processes that print 10 lines a second each, beside them Stat, gRPC",
    kind: "stream",
    protocols: GRPC,
    job: ({ load, files, clientPath }) => ({
      count: load.printers,
      concurrency: load.printers,
      argv: [clientPath, "lines", "-interval", `${LINE_INTERVAL_MS}ms`, files.lines],
      expectFile: files.lines,
    }),
    // Not while they are being started: that is the case above.
    probe: (context) => ({ ...stat(context), delayMs: context.load.settledMs }),
    figures: [CPU_OF_ALL, PEAK, ...PROBE],
    goals: { probeP99Ms: { value: { max: 5 }, text: "< 5 ms on an idle machine" } },
  },
];

function fair(id, kind, name, protocols) {
  return {
    id,
    name,
    kind,
    protocols,
    job: ({ load, files, peer }) => ({
      count: load.transfers,
      concurrency: load.transfers,
      path: kind === "download" ? files.transfer : `${files.directory}/transfer-${peer}`,
      size: load.transferBytes,
    }),
    probe: execute,
    figures: [THROUGHPUT, { metric: "slowestOverFastest", label: "slowest over fastest transfer" }, CPU_OF_ALL, PEAK, ...PROBE],
    goals: { probeP99Ms: { value: { max: 20 }, text: "< 20 ms" } },
  };
}
