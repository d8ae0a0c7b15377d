import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/telemetry/*.e2e.ts"],
    globalSetup: "test/helpers/global-setup.ts",
    pool: "forks",
    // A collector is built, and an idle daemon watched for a minute.
    testTimeout: 300_000,
    hookTimeout: 900_000,
    maxWorkers: 1,
  },
});
