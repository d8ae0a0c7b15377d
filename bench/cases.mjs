import { mean } from "./statistics.mjs";

/**
 * What is measured. `kind` says how: a start of the daemon, a look at its memory, or a job of the client; `protocols`, how each
 * kind of daemon is spoken to, if it takes part.
 *
 * Goals are a `value`, or ratios to other daemons of this run, of which the first that runs
 * counts. Where the goal is a daemon that never runs here, the ratio to sshd is that of an earlier run with both.
 */

const P50 = { metric: "p50Ms", label: "p50, ms" };
const P99 = { metric: "p99Ms", label: "p99, ms" };
const RATE = { metric: "perSecond", label: "calls/s" };
const THROUGHPUT = { metric: "mibPerSecond", label: "MiB/s" };
/** The kernel counts in steps of 10 ms, which only average out over all rounds. */
const CPU = { metric: "cpuMicros", label: "daemon CPU, µs/call", typical: mean };
const CPU_WITH_CHILDREN = { metric: "cpuWithChildrenMicros", label: "CPU with the commands', µs/call", typical: mean };

/** The same through either daemon: sshd always puts the login shell in front. */
const TRUE = ["/bin/sh", "-c", "true"];

const EXEC_GOALS = { p50Ms: { ratios: { "grpc-go": { max: 1 }, sshd: { max: 0.52 } }, text: "≤ 1.0 × Go PicoD" } };
const CONCURRENT_GOALS = {
  perSecond: { ratios: { "grpc-go": { min: 1 }, sshd: { min: 2.25 } }, text: "≥ 1.0 × sandboxd (grpc-go)" },
  p99Ms: { ratios: { "grpc-go": { max: 1 } }, value: { max: 22 }, text: "≤ 1.0 × Go PicoD (22 ms)" },
  cpuMicros: { ratios: { "grpc-go": { max: 1 } }, value: { max: 340 }, text: "≤ 1.0 × Go PicoD (340 µs)" },
};
const WRITE_GOALS = { p50Ms: { ratios: { sshd: { max: 0.48 } }, text: "≤ 1.0 × envd" } };
const READ_GOALS = { p50Ms: { ratios: { sshd: { max: 0.36 } }, text: "≤ 1.0 × envd" } };

const GRPC = { picod: "grpc", "grpc-go": "grpc", sshd: "ssh" };
const HTTP = { picod: "http", sshd: "ssh" };
const HTTP_FILES = { picod: "http", nginx: "http", sshd: "ssh" };

export const CASES = [
  {
    id: "start-up",
    name: "start-up",
    kind: "start-up",
    protocols: HTTP,
    figures: [{ metric: "p50Ms", label: "to the first answer, ms" }],
    goals: { p50Ms: { value: { max: 50 }, text: "≤ 50 ms" } },
  },
  {
    id: "idle-memory",
    name: "idle memory",
    kind: "memory",
    figures: [
      { metric: "residentMib", label: "resident, MiB" },
      { metric: "anonymousMib", label: "anonymous, MiB" },
    ],
    goals: {
      residentMib: { value: { max: 60 }, text: "≤ 60 MiB" },
      anonymousMib: { value: { max: 20 }, text: "≤ 20 MiB" },
    },
  },
  exec("exec", "exec sequential, gRPC", GRPC, EXEC_GOALS),
  exec("exec-http", "exec sequential, Connect JSON over HTTP/1.1", HTTP, EXEC_GOALS),
  concurrentExec("exec-16", "exec at concurrency 16, gRPC", GRPC, CONCURRENT_GOALS),
  concurrentExec("exec-16-http", "exec at concurrency 16, Connect JSON over HTTP/1.1", HTTP, CONCURRENT_GOALS),
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
  {
    id: "exec-memory",
    name: "memory after the execs",
    kind: "memory",
    figures: [
      { metric: "residentMib", label: "resident, MiB" },
      { metric: "anonymousMib", label: "anonymous, MiB" },
    ],
    goals: { residentMib: { value: { max: 90 }, text: "≤ 90 MiB" } },
  },
  bulk("download", "download 512 MiB, gRPC", GRPC, { "grpc-go": { min: 1.2 }, sshd: { min: 2.24 } }, "≥ 1.2 × a grpc-go server"),
  bulk("download-http", "download 512 MiB, plain HTTP", HTTP_FILES, { sshd: { min: 4.18 } }, "≥ 1.0 × envd"),
  bulk("upload", "upload 512 MiB, gRPC", GRPC, { "grpc-go": { min: 0.8 }, sshd: { min: 2.47 } }, "≥ 0.8 × a grpc-go server"),
  bulk("upload-http", "upload 512 MiB, plain HTTP", HTTP_FILES, { sshd: { min: 3.02 } }, "≥ 1.0 × envd"),
  smallFiles("small-writes", "write", "1,000 small writes, gRPC", GRPC, WRITE_GOALS),
  smallFiles("small-writes-http", "write", "1,000 small writes, plain HTTP", HTTP_FILES, WRITE_GOALS),
  smallFiles("small-reads", "read", "1,000 small reads, gRPC", GRPC, READ_GOALS),
  smallFiles("small-reads-http", "read", "1,000 small reads, plain HTTP", HTTP_FILES, READ_GOALS),
];

function exec(id, name, protocols, goals) {
  const job = ({ load }) => ({ count: load.execs, argv: TRUE });
  return { id, name, kind: "exec", protocols, job, figures: [P50, P99, CPU, CPU_WITH_CHILDREN], goals };
}

function concurrentExec(id, name, protocols, goals) {
  const job = ({ load }) => ({ count: load.concurrentExecs, concurrency: 16, argv: TRUE });
  return { id, name, kind: "exec", protocols, job, figures: [RATE, P99, CPU, CPU_WITH_CHILDREN], goals };
}

function bulk(id, name, protocols, ratios, text) {
  const kind = id.startsWith("download") ? "download" : "upload";
  return {
    id,
    name,
    kind,
    protocols,
    job: ({ load, files, peer }) => ({
      count: 1,
      path: kind === "download" ? files.bulk : `${files.directory}/upload-${peer}`,
      size: load.bulkBytes,
    }),
    figures: [
      THROUGHPUT,
      { metric: "cpuMillis", label: "daemon CPU, ms", typical: mean },
      { metric: "peakMib", label: "peak resident, MiB" },
    ],
    goals: { mibPerSecond: { ratios, text }, peakMib: { value: { max: 90 }, text: "≤ 90 MiB" } },
  };
}

function smallFiles(id, kind, name, protocols, goals) {
  const job = ({ load, files, peer }) => ({
    count: load.smallFiles,
    path: kind === "read" ? files.small : `${files.directory}/small-${peer}`,
    size: 1024,
  });
  return { id, name, kind, protocols, job, figures: [P50, P99, CPU], goals };
}
