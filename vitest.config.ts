import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "web/**/*.test.ts"],
    setupFiles: ["test/property-seed.ts"],
    // Property tests over generated jobs take their time on a busy machine.
    testTimeout: 120_000,
    // Hundreds of tests wait for real processes, brokers and browsers; one that was starved of the processor gets
    // another try, and the output says which did. What is wrong with the code fails every time: seeds are fixed.
    retry: 2,
    // Many tests wait for processes: two at a time also where the default, one less than the cores, would be one.
    maxWorkers: "100%",
  },
});
