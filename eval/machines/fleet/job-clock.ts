/** What the job as a whole does, second by second: all machines do it together. */
import { heavy } from "../../../src/simulate/emit/metrics/spread.ts";
import type { Nuisances } from "./nuisances.ts";

export type Mode = "train" | "checkpoint" | "evaluation" | "wait" | "idle" | "load";

/** A stretch in which the job runs at a share of its pace. */
export interface Slowdown {
  readonly fromS: number;
  readonly untilS: number;
  readonly pace: number;
  readonly rampS: number;
}

/** How the job takes a fault: it waits for somebody from then on, and ends (or is ended) some time later. */
export interface Halt {
  readonly waitsS: number;
  readonly endsS: number;
}

export interface JobClock {
  readonly modes: readonly Mode[];
  /** Iterations done until the second's start, and during it. */
  readonly position: Float64Array;
  readonly pace: Float64Array;
}

/** Loading ends this long after the last machine has started (assumed). */
const LOAD_S = 15;

export function jobClock(
  seconds: number,
  iterationS: number,
  nuisances: Nuisances,
  slowdowns: readonly Slowdown[],
  halt: Halt | null,
  seed: number,
): JobClock {
  const modes: Mode[] = [];
  const pace = new Float64Array(seconds);
  const position = new Float64Array(seconds + 1);
  for (let s = 0; s < seconds; s++) {
    const mode = modeAt(s, nuisances, halt);
    modes.push(mode);
    const wobble = heavy(seed, Math.floor(position[s]!), 0x30bb1e, 0);
    let now = mode === "train" || mode === "evaluation" ? 1 - nuisances.wobble * wobble : 0;
    for (const { fromS, untilS, pace: slow, rampS } of slowdowns) {
      if (s < fromS || s >= untilS) continue;
      now *= 1 - (1 - slow) * (rampS <= 0 ? 1 : Math.min(1, (s - fromS) / rampS));
    }
    pace[s] = Math.max(0, now);
    position[s + 1] = position[s]! + pace[s]! / iterationS;
  }
  return { modes, position, pace };
}

function modeAt(s: number, nuisances: Nuisances, halt: Halt | null): Mode {
  const { idle, checkpoints, evaluation, warmupS } = nuisances;
  if (idle && s >= idle.fromS && s < idle.untilS) return "idle";
  if (halt && s >= halt.endsS) return "idle";
  if (halt && s >= halt.waitsS) return "wait";
  if (warmupS > 0 && s < warmupS + LOAD_S) return "load";
  if (checkpoints && checkpointAt(s, checkpoints) < checkpoints.pauseS) return "checkpoint";
  if (evaluation && s >= evaluation.fromS && s < evaluation.untilS) return "evaluation";
  return "train";
}

/** Seconds since the last checkpoint began; the first is in the middle of an interval. */
export function checkpointAt(s: number, { everyS }: { readonly everyS: number }): number {
  const since = s - everyS / 2;
  return since < 0 ? Infinity : since % everyS;
}
