import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/load/**/*.load.ts"],
    pool: "forks",
    // One fault at a time, on a machine that does nothing else.
    maxWorkers: 1,
    testTimeout: 60 * 60_000,
  },
});
