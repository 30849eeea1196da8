import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    setupFiles: ["test/property-seed.ts"],
    // Property tests over generated jobs take their time on a busy machine.
    testTimeout: 120_000,
  },
});
