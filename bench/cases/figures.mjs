import { mean } from "../statistics.mjs";

export const P50 = { metric: "p50Ms", label: "p50, ms" };
export const P99 = { metric: "p99Ms", label: "p99, ms" };
export const RATE = { metric: "perSecond", label: "calls/s" };
export const THROUGHPUT = { metric: "mibPerSecond", label: "MiB/s" };
export const PEAK = { metric: "peakMib", label: "peak resident, MiB" };
/** The kernel counts in steps of 10 ms, which only average out over all rounds. */
export const CPU = { metric: "cpuMicros", label: "daemon CPU, µs/call", typical: mean };
export const CPU_WITH_CHILDREN = { metric: "cpuWithChildrenMicros", label: "CPU with the commands', µs/call", typical: mean };
export const CPU_OF_ALL = { metric: "cpuMillis", label: "daemon CPU, ms", typical: mean };

/** How each kind of daemon is spoken to. */
export const GRPC = { picod: "grpc", "grpc-go": "grpc", sshd: "ssh" };
export const GRPC_AND_SDKS = { ...GRPC, sdk: "grpc" };
export const HTTP = { picod: "http", sshd: "ssh" };
export const HTTP_FILES = { picod: "http", nginx: "http", sshd: "ssh" };
