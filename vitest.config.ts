import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { ALL_CASES } from "./test/support/cases.ts";
import { LACKING_FILE } from "./test/support/lacking.ts";

process.env[LACKING_FILE] = join(tmpdir(), `faultline-tests-lacking-${process.pid}`);

/** Tables of cases of which `npm test` asks a few. */
const ALL_OF_THEM = [
  "src/methods/localize/progressive/progressive.test.ts",
  "src/methods/localize/slow-rank.test.ts",
  "src/methods/localize/what-if/what-if.test.ts",
  "src/report/html/html.test.ts",
  "src/report/html/trace-page.test.ts",
  "src/simulate/cluster/engine.test.ts",
  "src/simulate/hang-cases/hang-case.test.ts",
  "test/iterations.test.ts",
  "test/machines.test.ts",
  "test/recorded-rings.test.ts",
  "test/simulated-jobs.test.ts",
];

const common = { setupFiles: ["test/support/property-seed.ts"] };

export default defineConfig({
  test: {
    // Many tests wait for processes: two at a time also where the default, one less than the cores, would be one.
    maxWorkers: "100%",
    reporters: ["default", "./test/support/summary.ts"],
    projects: [
      {
        // `npm test`: needs Node alone, tries nothing twice, and keeps no process busy with loading what another has.
        test: {
          ...common,
          name: "unit",
          include: ["src/**/*.test.ts", "test/*.test.ts", "web/**/*.test.ts"],
          testTimeout: 60_000,
          isolate: false,
        },
      },
      {
        // `npm run test:system`: real servers, browsers, compilers, kill -9. What was starved of the processor gets another
        // try; the end of the output counts and names it.
        test: {
          ...common,
          name: "system",
          include: ["test/system/**/*.test.ts", ...ALL_OF_THEM],
          env: { [ALL_CASES]: "1" },
          testTimeout: 120_000,
          retry: 1,
        },
      },
    ],
  },
});
