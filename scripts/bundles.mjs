// What the daemon's program consists of: for the build, for the loader and for the packages.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * One file each, `NAME.cjs`. An entry is below the repository's folder, or absolute. What is not a thread of its own is loaded by
 * `require("NAME")`, by those daemons that need it.
 */
export const BUNDLES = [
  // Searches files.
  { name: "search-worker", entry: "src/filesystem/searching/search-worker.ts", isThread: true },
  // Starts programs for a capability.
  { name: "confined-worker", entry: "src/os/confined-worker.ts", isThread: true },
  // OpenTelemetry, where traces are exported.
  { name: "otlp-tracer", entry: "src/telemetry/otlp-tracer.ts" },
  // The parser of shell lines, where a policy lists commands.
  { name: "judge-line", entry: "src/policy/commands/judge-line.ts" },
  // The Model Context Protocol's SDK, when the first client comes.
  { name: "mcp-server", entry: "src/api/mcp/protocol/main.ts" },
  // For tokens that somebody else has signed, WebSockets, and the files of policies.
  ...["jose", "ws", "smol-toml"].map((name) => ({ name, entry: require.resolve(name) })),
  // For terminals.
  { name: "pino-pretty", entry: require.resolve("pino-pretty") },
];

/** Those that are loaded by name. */
export const LOADED_BUNDLES = BUNDLES.filter(({ isThread }) => !isThread).map(({ name }) => name);

/** The program's files that are the same for every architecture. */
export const PROGRAM_FILES = ["picod.cjs", "daemon.cjs", ...BUNDLES.map(({ name }) => `${name}.cjs`)];
