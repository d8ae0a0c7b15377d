import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    globalSetup: "test/e2e/setup.ts",
    pool: "forks",
    // Containers that stop, and machines that boot.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
  },
});
