/**
 * Written by `npm run eval -- recordings --fit` (eval/recordings/earned.ts says how); do not edit it. Recordings of the families
 * that teach (eval/recordings/families.ts).
 */

/** Of a method that decided no verdict of this kind on a real job. */
export const UNPROVEN = 0.75;

/** Kind of verdict → method that decided it → what is left of the confidence. */
export const EARNED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  crash: {
    // 8 of 8 right, in 3 families
    "crash/first-error": 0.9,
    // 1 of 1 right, in 1 family
    "hang/wait-graph": 0.8,
  },
  hang: {
    // 32 of 33 right, in 14 families
    "hang/wait-graph": 0.929,
  },
  healthy: {
    // 24 of 26 right, in 18 families
    nobody: 0.889,
  },
  regression: {
    // 2 of 2 right, in 1 family
    "traces/regression": 0.833,
  },
};
