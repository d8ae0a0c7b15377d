import { CPU, CPU_OF_ALL, GRPC, GRPC_AND_SDKS, HTTP_FILES, P50, P99, PEAK, RATE, THROUGHPUT } from "./figures.mjs";

export const bulks = [
  bulk(
    "download",
    "download 512 MiB, gRPC",
    GRPC_AND_SDKS,
    { "grpc-go": { min: 1.2 }, sshd: { min: 2.24 } },
    "≥ 1.2 × a grpc-go server",
  ),
  bulk("download-http", "download 512 MiB, plain HTTP", HTTP_FILES, { sshd: { min: 4.18 } }, "≥ 1.0 × envd"),
  verified("download-sha256", "download 512 MiB with SHA-256, gRPC"),
  bulk(
    "upload",
    "upload 512 MiB, gRPC",
    GRPC_AND_SDKS,
    { "grpc-go": { min: 0.8 }, sshd: { min: 2.47 } },
    "≥ 0.8 × a grpc-go server",
  ),
  bulk("upload-http", "upload 512 MiB, plain HTTP", HTTP_FILES, { sshd: { min: 3.02 } }, "≥ 1.0 × envd"),
  verified("upload-sha256", "upload 512 MiB with SHA-256, gRPC"),
];

const WRITE_GOALS = { p50Ms: { ratios: { sshd: { max: 0.48 } }, text: "≤ 1.0 × envd" } };
const READ_GOALS = { p50Ms: { ratios: { sshd: { max: 0.36 } }, text: "≤ 1.0 × envd" } };
/** The run that the goals come from had sshd one at a time only: envd's rate over that one. */
const WRITE_16_GOALS = { perSecond: { ratios: { sshd: { min: 5.2, of: "referencePerSecond" } }, text: "≥ 1.0 × envd" } };
const READ_16_GOALS = { perSecond: { ratios: { sshd: { min: 8.5, of: "referencePerSecond" } }, text: "≥ 1.0 × envd" } };

export const smallFiles = [
  small("small-writes", "write", "1,000 small writes, gRPC", GRPC_AND_SDKS, WRITE_GOALS),
  small("small-writes-http", "write", "1,000 small writes, plain HTTP", HTTP_FILES, WRITE_GOALS),
  small("small-reads", "read", "1,000 small reads, gRPC", GRPC_AND_SDKS, READ_GOALS),
  small("small-reads-http", "read", "1,000 small reads, plain HTTP", HTTP_FILES, READ_GOALS),
  concurrentSmall("small-writes-16", "write", "small writes at concurrency 16, gRPC", GRPC, WRITE_16_GOALS),
  concurrentSmall("small-writes-16-http", "write", "small writes at concurrency 16, plain HTTP", HTTP_FILES, WRITE_16_GOALS),
  concurrentSmall("small-reads-16", "read", "small reads at concurrency 16, gRPC", GRPC, READ_16_GOALS),
  concurrentSmall("small-reads-16-http", "read", "small reads at concurrency 16, plain HTTP", HTTP_FILES, READ_16_GOALS),
];

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
      // SDKs go from file to file, the client in Go from and to memory.
      localPath: kind === "download" ? `${files.directory}/downloaded` : files.bulk,
      size: load.bulkBytes,
    }),
    figures: [THROUGHPUT, CPU_OF_ALL, PEAK],
    goals: { mibPerSecond: { ratios, text }, peakMib: { value: { max: 90 }, text: "≤ 90 MiB" } },
  };
}

/** The same with a checksum, each time beside one without. SFTP has none. */
function verified(id, name) {
  const { job, ...rest } = bulk(id, name, { picod: "grpc", "grpc-go": "grpc" });
  return {
    ...rest,
    reference: job,
    job: (context) => ({ ...job(context), checksum: true }),
    figures: [THROUGHPUT, { metric: "timesReference", label: "× the time without" }, CPU_OF_ALL],
    goals: { timesReference: { value: { max: 2 }, text: "< 2 × without" } },
  };
}

function small(id, kind, name, protocols, goals) {
  const job = ({ load, files, peer }) => ({
    count: load.smallFiles,
    path: kind === "read" ? files.small : `${files.directory}/small-${peer}`,
    size: 1024,
  });
  return { id, name, kind, protocols, job, figures: [P50, P99, CPU], goals };
}

function concurrentSmall(id, kind, name, protocols, goals) {
  const { job, ...rest } = small(id, kind, name, protocols, goals);
  return {
    ...rest,
    reference: job,
    job: (context) => ({ ...job(context), concurrency: 16 }),
    figures: [RATE, P99, CPU],
  };
}
