/** The shim, its thread and the stubs under ThreadSanitizer and AddressSanitizer. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { build, canBuild, ringsIn, start } from "./build.ts";
import { readRing } from "./ring.ts";
import { unlessThere } from "../../support/lacking.ts";

/** The sanitizer's own library, which must be loaded before ours; null where there is none. */
function runtime(name: string): string | null {
  if (!canBuild) return null;
  const found = spawnSync("cc", [`-print-file-name=${name}`], { encoding: "utf8" }).stdout.trim();
  return existsSync(found) ? found : null;
}

const SCENARIOS = [
  "operators",
  "groups",
  "communicators",
  "results",
  "capture",
  "overflow",
  "driver-fails between",
  "contexts",
  "threads",
  "products",
  "many-products",
];

describe.each([
  ["ThreadSanitizer", "libtsan.so", "-fsanitize=thread -Wno-tsan", SCENARIOS],
  // The former knows no threads in a fork's child.
  [
    "AddressSanitizer",
    "libasan.so",
    "-fsanitize=address,undefined -fno-sanitize-recover=all",
    [...SCENARIOS, "forks"],
  ],
] as const)("%s", (_, name, flags, scenarios) => {
  const library = runtime(name);
  const why = unlessThere(library !== null, name, "gcc libtsan2 libasan8");

  describe.skipIf(library === null)(`of the shim${why}`, () => {
    let built = "";
    beforeAll(() => {
      built = build(`SANITIZE=${flags}`, "CFLAGS=-O1 -g");
    }, 600_000);

    it.each(scenarios)("finds nothing in: %s", async (scenario) => {
      const job = start(built, [join(built, "program"), ...scenario.split(" ")], {
        LD_PRELOAD: `${library} ${join(built, "libfaultline.so")}`,
        FAULTLINE_KERNELS: "1",
        // What the stubs leave behind is theirs.
        ASAN_OPTIONS: "detect_leaks=0",
        TSAN_OPTIONS: "exitcode=66",
      });
      expect({ status: await job.ended, complained: job.complained() }).toEqual({
        status: 0,
        complained: "",
      });
      expect(readRing(ringsIn(job.rings)[0]!).records.length).toBeGreaterThan(0);
    });
  });
});
