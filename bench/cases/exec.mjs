import { CPU, CPU_OF_ALL, CPU_WITH_CHILDREN, GRPC, GRPC_AND_SDKS, HTTP, P50, P99, PEAK, RATE, THROUGHPUT } from "./figures.mjs";

/** The same through either daemon: sshd always puts the login shell in front. */
export const TRUE = ["/bin/sh", "-c", "true"];

const EXEC_GOALS = { p50Ms: { ratios: { "grpc-go": { max: 1 }, sshd: { max: 0.52 } }, text: "≤ 1.0 × Go PicoD" } };
const CONCURRENT_GOALS = {
  perSecond: { ratios: { "grpc-go": { min: 1 }, sshd: { min: 2.25 } }, text: "≥ 1.0 × sandboxd (grpc-go)" },
  p99Ms: { ratios: { "grpc-go": { max: 1 } }, value: { max: 22 }, text: "≤ 1.0 × Go PicoD (22 ms)" },
  cpuMicros: { ratios: { "grpc-go": { max: 1 } }, value: { max: 340 }, text: "≤ 1.0 × Go PicoD (340 µs)" },
};

export const execs = [
  exec("exec", "exec sequential, gRPC", GRPC_AND_SDKS),
  exec("exec-http", "exec sequential, Connect JSON over HTTP/1.1", HTTP),
  concurrentExec("exec-16", "exec at concurrency 16, gRPC", GRPC),
  concurrentExec("exec-16-http", "exec at concurrency 16, Connect JSON over HTTP/1.1", HTTP),
  {
    id: "exec-1mib",
    name: "exec with 1 MiB output, gRPC",
    kind: "exec",
    protocols: GRPC,
    job: ({ load, files }) => ({
      count: load.largeOutputs,
      argv: ["/bin/sh", "-c", `cat ${files.text}`],
      expectFile: files.text,
    }),
    figures: [P50, P99, CPU],
    goals: { p50Ms: { ratios: { sshd: { max: 1 } }, text: "≤ 1.0 × sshd, never wrong" } },
  },
];

export const sleeps = {
  id: "sleep-200",
  name: "200 × `sleep 2` at once, gRPC",
  kind: "exec",
  protocols: GRPC,
  job: ({ load }) => ({ count: load.sleeps, concurrency: load.sleeps, argv: ["/bin/sh", "-c", `sleep ${load.sleepSeconds}`] }),
  derive: ({ seconds }, { load }) => ({ beyondSleepMs: (seconds - load.sleepSeconds) * 1000 }),
  figures: [{ metric: "beyondSleepMs", label: "all done, ms beyond the 2 s" }, CPU, PEAK],
  goals: {
    beyondSleepMs: { value: { max: 250 }, text: "≤ 250 ms" },
    peakMib: { value: { max: 110 }, text: "≤ 110 MiB" },
  },
};

export const stream = {
  id: "stream",
  name: "stdout of 256 MiB as a stream, gRPC",
  kind: "stream",
  protocols: GRPC,
  job: ({ load, files }) => ({
    count: 1,
    argv: ["/bin/sh", "-c", `cat ${files.stream}`],
    expectFile: files.stream,
    size: load.streamBytes,
  }),
  figures: [THROUGHPUT, CPU_OF_ALL, PEAK],
  goals: { mibPerSecond: { ratios: { sshd: { min: 1.3 } }, text: "≥ 1.3 × sshd" } },
};

function exec(id, name, protocols) {
  const job = ({ load }) => ({ count: load.execs, argv: TRUE });
  return { id, name, kind: "exec", protocols, job, figures: [P50, P99, CPU, CPU_WITH_CHILDREN], goals: EXEC_GOALS };
}

function concurrentExec(id, name, protocols) {
  const job = ({ load }) => ({ count: load.concurrentExecs, concurrency: 16, argv: TRUE });
  return { id, name, kind: "exec", protocols, job, figures: [RATE, P99, CPU, CPU_WITH_CHILDREN], goals: CONCURRENT_GOALS };
}
