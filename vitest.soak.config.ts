import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default defineConfig({
  test: {
    include: ["test/soak/**/*.soak.ts"],
    pool: "forks",
    testTimeout: 15 * 60_000,
  },
});
