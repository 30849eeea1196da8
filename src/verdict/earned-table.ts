/**
 * Written by `npm run eval -- recordings --fit` (eval/recordings/earned.ts says how); do not edit it. Recordings of the families
 * that teach (eval/recordings/families.ts).
 */

/** Of a method that decided no verdict of this kind on a real job. */
export const UNPROVEN = 0.75;

/** Kind of verdict → method that decided it → what is left of the confidence. */
export const EARNED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  crash: {
    // 6 of 7 right, in 2 families
    "crash/first-error": 0.778,
  },
  "fail-slow": {
    // 10 of 12 right, in 3 families
    "localize/slow-rank": 0.727,
  },
  hang: {
    // 16 of 19 right, in 3 families
    "hang/wait-graph": 0.714,
  },
  healthy: {
    // 8 of 8 right, in 2 families
    nobody: 0.889,
  },
  regression: {
    // 2 of 2 right, in 1 family
    "traces/regression": 0.833,
  },
};
