import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { ALL_CASES } from "./test/support/cases.ts";
import { LACKING_FILE } from "./test/support/lacking.ts";

process.env[LACKING_FILE] = join(tmpdir(), `faultline-tests-lacking-${process.pid}`);

/** Tests that ask a few of many cases in `npm test`: they ask all in `npm run test:long`. */
const ofManyCases = ["src", "test", "web", "eval"].flatMap((folder) =>
  readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts") && !name.startsWith("system/"))
    .map((name) => `${folder}/${name}`)
    .filter((path) =>
      readFileSync(join(import.meta.dirname, path), "utf8").includes("support/cases.ts"),
    ),
);

const common = {
  setupFiles: ["test/support/property-seed.ts"],
  // One second by itself, which a busy machine may need for anything.
  expect: { poll: { timeout: 50_000 } },
};

/** What was starved of the processor gets another try; the end of the output counts and names it. */
const system = { ...common, testTimeout: 120_000, hookTimeout: 120_000, retry: 1 };

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
          include: [
            "src/**/*.test.ts",
            "test/*.test.ts",
            "test/contracts/*.test.ts",
            "web/**/*.test.ts",
            "eval/**/*.test.ts",
          ],
          testTimeout: 120_000,
          isolate: false,
        },
      },
      {
        // `npm run test:system`: real servers, browsers, compilers, kill -9. CI runs it.
        test: {
          ...system,
          name: "system",
          include: ["test/system/**/*.test.ts"],
          exclude: ["**/*.long.test.ts"],
        },
      },
      {
        // `npm run test:long`: the same and all that takes minutes, for changes of what it tests, and before a release.
        test: {
          ...system,
          name: "long",
          include: ["test/system/**/*.test.ts", ...ofManyCases],
          env: { [ALL_CASES]: "1" },
        },
      },
    ],
  },
});
