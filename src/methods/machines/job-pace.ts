/**
 * Whether the whole job was held up while a machine was unlike. In a synchronous job nobody is slow alone: a machine whose
 * partners go on at full speed has at most a sensor that says otherwise, and one that changed just when all of them
 * slowed down has more against it than its own metrics.
 */
import { median } from "../../maths/robust.ts";
import type { Phase } from "../../model/machine-report.ts";
import { isIn, type Activity } from "./phases.ts";

/** How much is compared with what was before. */
const BEFORE_S = 600;
/** Onsets are a sample wide, and so are ramps. */
const EDGE_S = 30;
const LEAST_TICKS = 4;
/** What is compared right before and right after something began. */
const BESIDE_S = 90;
const LEAST_BESIDE = 2;
/** Of the pace: more than this is a job that is slower, less is one that is not. */
const HELD_UP = 0.07;
const UNHINDERED = 0.03;

export interface JobPace {
  /** Whether any metric tells how fast the job goes. */
  readonly isKnown: boolean;
  /** Whether all were slower between these times than before; null where it cannot be told. */
  heldUp(this: void, fromS: number, toS: number): boolean | null;
  /** Whether all became slower just then, and faster again just when it ended; null where it cannot be told. */
  slowedWith(this: void, fromS: number, toS: number): boolean | null;
  /** Whether the job still made progress, however long ago it began to; null where it cannot be told. */
  goesOn(this: void, fromS: number, toS: number): boolean | null;
  /** Whether all were as fast as before; null where it cannot be told. */
  unhindered(this: void, fromS: number, toS: number): boolean | null;
}

/** `level` of the activity is the middle machine's. */
export function jobPace({ level, grid, phases }: Activity): JobPace {
  const cannotTell = (): null => null;
  if (!level || !grid)
    return {
      isKnown: false,
      heldUp: cannotTell,
      slowedWith: cannotTell,
      goesOn: cannotTell,
      unhindered: cannotTell,
    };
  const { startS, stepS, ticks } = grid;
  const isWork = Uint8Array.from({ length: ticks }, (_, t) =>
    isIn(phases, startS + (t + 0.5) * stepS, "pause", "idle", "warm-up") ? 0 : 1,
  );
  const usual = (fromS: number, toS: number, least = LEAST_TICKS): number => {
    const first = Math.max(0, Math.ceil((fromS - startS) / stepS));
    const last = Math.min(ticks, Math.floor((toS - startS) / stepS));
    const seen: number[] = [];
    for (let t = first; t < last; t++)
      if (isWork[t] === 1 && level[t] === level[t]) seen.push(level[t]!);
    return seen.length < least ? NaN : median(seen);
  };
  const lost = (fromS: number, toS: number): number => {
    const edgeS = Math.max(EDGE_S, stepS);
    const before = usual(fromS - BEFORE_S, fromS - edgeS);
    return 1 - usual(fromS + edgeS, toS) / before;
  };
  const stepsDown = (atS: number, sign: 1 | -1): boolean | null => {
    const edgeS = Math.max(EDGE_S, stepS);
    const awayS = edgeS + Math.max(BESIDE_S, 3 * stepS);
    const [before, after] = [
      usual(atS - awayS, atS - edgeS, LEAST_BESIDE),
      usual(atS + edgeS, atS + awayS, LEAST_BESIDE),
    ];
    const share = sign > 0 ? 1 - after / before : 1 - before / after;
    return Number.isFinite(share) ? share >= HELD_UP : null;
  };
  const slowedWith = (fromS: number, toS: number): boolean | null => {
    if (endsInHalt(phases, fromS, toS)) return true;
    const began = stepsDown(fromS, 1);
    return began === false ? false : stepsDown(toS, -1) === false ? false : began;
  };
  const asked =
    (is: (share: number) => boolean) =>
    (fromS: number, toS: number): boolean | null => {
      if (endsInHalt(phases, fromS, toS)) return is(1);
      const share = lost(fromS, toS);
      return Number.isFinite(share) ? is(share) : null;
    };
  // Who waits in a collective is as busy as who works.
  const isClear = grid.metric !== "gpu-duty-cycle";
  const goesOn = (fromS: number, toS: number): boolean | null => {
    if (!isClear) return null;
    const now = usual(fromS + stepS, toS, LEAST_BESIDE);
    const share = now / usual(fromS - BEFORE_S, fromS - stepS);
    return Number.isFinite(share) ? share >= 1 - HELD_UP : null;
  };
  return {
    isKnown: true,
    slowedWith,
    goesOn,
    heldUp: asked((share) => share >= HELD_UP),
    unhindered: isClear ? asked((share) => share < UNHINDERED) : cannotTell,
  };
}

/** A halt is the most that a job can be held up; one that comes long after has its own reasons. */
function endsInHalt(phases: readonly Phase[], fromS: number, toS: number): boolean {
  return phases.some(
    ({ what, fromS: haltS }) => what === "halt" && haltS >= fromS - 60 && haltS < toS,
  );
}
