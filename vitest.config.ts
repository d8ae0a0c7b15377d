import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // They make containers: npm run test:e2e.
    exclude: ["test/e2e/**"],
    globalSetup: "test/helpers/global-setup.ts",
    // Signals, credentials and child processes belong to a process, not to a thread.
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Many wait for processes and time-outs most of the time.
    maxWorkers: 3,
  },
});
