import { expect, it } from "vitest";
import { testFleet } from "../../test/support/methods/minder-fleet.ts";
import { sweepMinder, THRESHOLDS, VARIANT_NAMES } from "./minder-sweep.ts";

// Dead: in a model over all metrics (INT) one metric alone is drowned by the others' noise, as the paper finds.
const sick = testFleet({
  machines: 24,
  ticks: 600,
  seed: 5,
  act: (_, machine, second, value) => (machine === 11 && second >= 100 ? 0.1 * value : value),
});
const answers = sweepMinder(sick);

// Without continuity a single noisy window is an alarm: minder.test.ts has a test with a threshold that noise does not reach.
const LASTING = VARIANT_NAMES.filter((name) => name !== "without continuity");

it.each(LASTING)("%s finds a machine that is dead", (name) => {
  expect(answers[name][THRESHOLDS.indexOf(3)]).toBe("node-11");
});
