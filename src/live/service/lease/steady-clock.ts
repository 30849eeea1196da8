/**
 * A time of day that never jumps: the service waits, counts and dates by it. When the machine's clock is set, by seconds or
 * hours, it follows slowly, so that no job seems silent for an hour, and none is silent for good.
 */
import { describeStep } from "../job/agent-clocks.ts";

/** Of the time that passes: how much faster or slower it runs until it is right again. */
const RATE = 0.1;
/** A step of less is how clocks are kept right. */
const STEP_MS = 500;

export interface SteadyClockOptions {
  /** Milliseconds since 1970, by the machine's clock. */
  wallMs(this: void): number;
  /** Milliseconds that only grow. */
  monotonicMs(this: void): number;
  /** One line for each step. */
  onStep(this: void, line: string): void;
}

export function steadyClock({ wallMs, monotonicMs, onStep }: SteadyClockOptions): () => number {
  let nowMs = wallMs();
  let lastMs = monotonicMs();
  let behindMs = 0;
  return () => {
    const monotonic = monotonicMs();
    const passedMs = Math.max(0, monotonic - lastMs);
    lastMs = monotonic;
    const before = behindMs;
    behindMs = wallMs() - (nowMs + passedMs);
    if (Math.abs(behindMs - before) > STEP_MS)
      onStep(
        `the clock of this machine was set ${describeStep(behindMs - before)}; times follow slowly`,
      );
    const most = RATE * passedMs;
    const correctedMs = Math.max(-most, Math.min(most, behindMs));
    behindMs -= correctedMs;
    nowMs += passedMs + correctedMs;
    return nowMs;
  };
}
