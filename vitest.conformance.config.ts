import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/interop/*.conformance.ts"],
    globalSetup: "test/helpers/global-setup.ts",
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
