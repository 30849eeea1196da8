/**
 * Work is counted, not timed, so that the same job always gets the same plan. A step is about what judging a swap costs
 * for one stage, some nanoseconds; whatever takes longer counts for as many.
 */
export interface Work {
  spent: number;
}

/** For one search, and for what comes after it (whole micro-batches, fewer swaps). */
const SEARCH_STEPS = 22e6;
const AFTER_STEPS = 11e6;
/** Larger jobs get more, in proportion to their slots, up to so many times as much. */
const USUAL_SLOTS = 1024;
const MOST_TIMES = 2.5;

const times = (slots: number): number => Math.min(Math.max(slots / USUAL_SLOTS, 1), MOST_TIMES);
export const searchSteps = (slots: number): number => SEARCH_STEPS * times(slots);
export const afterSteps = (slots: number): number => AFTER_STEPS * times(slots);
