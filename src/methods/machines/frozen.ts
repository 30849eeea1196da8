/** When a GPU's measured values stood still: its exporter served an old one, and nothing it showed then was true. */
import { exporterOf } from "./absence.ts";
import type { View } from "./views.ts";

/** Measured values, with digits that never stand still on a GPU that lives. */
const ANALOGUE = [
  "gpu-power-draw",
  "gpu-sm-activity",
  "gpu-tensor-core-activity",
  "gpu-graphics-engine-activity",
  "gpu-fp-engine-activity",
  "gpu-memory-bandwidth",
  "pcie-bandwidth",
  "pcie-usage",
  "nvlink-bandwidth",
];
/** Whole numbers of watts may stand; digits behind the point, and rates of bytes to the byte, do not. */
const FINE = 10_000;
const LEAST_SAMPLES = 8;
const LEAST_S = 60;

export interface FrozenSpan {
  readonly fromS: number;
  readonly toS: number;
}

/** Of samples of one device, in ticks. */
interface Run {
  readonly value: number;
  readonly from: number;
  to: number;
  seen: number;
}

export function isAnalogue(metric: string): boolean {
  return ANALOGUE.includes(metric);
}

export function isFine(value: number): boolean {
  return value % 1 !== 0 || Math.abs(value) > FINE;
}

/** Next to nothing: an idle GPU may show the same 0.006 % for minutes. */
export function isNothing({ scale }: View, value: number): boolean {
  return scale.ratio !== null && scale.to(value) - scale.to(0) < scale.material / 4;
}

/**
 * Of one machine. A machine's lowest value is one device's now and another's then, so every device is followed by
 * itself, whenever it is its turn.
 */
export function frozenSpans(machine: number, views: readonly View[]): FrozenSpan[] {
  return views
    .filter(({ grid, metric }) => exporterOf(grid) === "gpu" && isAnalogue(metric.id))
    .flatMap((view) => standing(machine, view));
}

/**
 * What an exporter serves anew is something that it has measured. A GPU that stops working falls to a level that it
 * never had while it worked, and an idle one may hold that to the last digit.
 */
function isNew({ grid, values, scale }: View, machine: number, { value, from }: Run): boolean {
  const row = values.subarray(
    machine * grid.ticks + Math.max(0, from - LOOK_BACK),
    machine * grid.ticks + from,
  );
  const before = row.filter((one) => one === one).sort();
  if (before.length < LEAST_SAMPLES) return false;
  const edge = Math.floor(OUTER * before.length);
  const off = Math.max(
    scale.to(before[edge]!) - scale.to(value),
    scale.to(value) - scale.to(before[before.length - 1 - edge]!),
  );
  return off > scale.material / 4;
}

/** Ticks. */
const LOOK_BACK = 60;
/** Checkpoints, and the sample in which it stopped, are no work. */
const OUTER = 0.15;

function standing(machine: number, view: View): FrozenSpan[] {
  const { grid, values, side } = view;
  const { ticks, startS, stepS } = grid;
  const whose = side === "low" ? grid.lowDevice : grid.highDevice;
  const spans: FrozenSpan[] = [];
  const runs = new Map<number, Run>();
  const close = (run: Run): void => {
    const isLong = run.seen >= LEAST_SAMPLES && (run.to - run.from) * stepS >= LEAST_S;
    const isOld = isFine(run.value) && !isNothing(view, run.value) && !isNew(view, machine, run);
    if (isLong && isOld)
      spans.push({ fromS: startS + run.from * stepS, toS: startS + (run.to + 1) * stepS });
  };
  for (let t = 0; t < ticks; t++) {
    const at = machine * ticks + t;
    const value = values[at]!;
    if (value !== value) continue;
    const device = whose ? whose[at]! : 0;
    const run = runs.get(device);
    if (run && run.value === value) {
      run.seen++;
      run.to = t;
      continue;
    }
    if (run) close(run);
    runs.set(device, { value, seen: 1, from: t, to: t });
  }
  for (const run of runs.values()) close(run);
  return spans;
}
