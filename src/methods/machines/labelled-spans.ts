/** Labels of people, found again in the metrics of a task: whom and when they are about. */
import { shortName } from "../../model/machine-names.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { MachineLabel } from "../../model/machine-labels.ts";
import type { LabelledSpan } from "./minder/prioritise.ts";

/** Less of a span says nothing. */
const LEAST_S = 60;

export interface MatchedLabels {
  readonly spans: readonly LabelledSpan[];
  readonly matched: ReadonlySet<MachineLabel>;
}

/** The time before the first fault of a task counts as healthy: what was wrong earlier would have been labelled. */
export function matchLabels(fleet: Fleet, labels: readonly MachineLabel[]): MatchedLabels {
  const [startS, endS] = timesOf(fleet);
  const indexOf = namesOf(fleet);
  const spans: LabelledSpan[] = [];
  const matched = new Set<MachineLabel>();
  for (const label of labels) {
    const { machine: name, isFaulty } = label;
    const machine = name === null ? null : indexOf.get(shortName(name));
    const [fromS, toS] = [Math.max(label.fromS, startS), Math.min(label.toS, endS)];
    if (machine === undefined || toS - fromS < LEAST_S) continue;
    matched.add(label);
    spans.push({ fromS, toS, isFaulty, machine });
  }
  const faultyS = spans.filter(({ isFaulty }) => isFaulty).map(({ fromS }) => fromS);
  const firstS = faultyS.reduce((least, fromS) => Math.min(least, fromS), Infinity);
  const isOpen = !spans.some(({ isFaulty, fromS }) => !isFaulty && fromS < firstS);
  if (isOpen && Number.isFinite(firstS) && firstS - startS >= 2 * LEAST_S)
    spans.push({ fromS: startS, toS: firstS - 1, isFaulty: false, machine: null });
  return { spans, matched };
}

function timesOf({ grids }: Fleet): readonly [number, number] {
  const starts = grids.map(({ startS }) => startS);
  const ends = grids.map(({ startS, stepS, ticks }) => startS + stepS * ticks);
  return [Math.min(...starts), Math.max(...ends)];
}

/** By any of its names. */
function namesOf({ machines, names }: Fleet): ReadonlyMap<string, number> {
  const found = new Map(machines.map((machine, m) => [shortName(machine), m]));
  for (const joined of names?.joined ?? []) {
    const m = found.get(shortName(joined.machine));
    if (m === undefined) continue;
    for (const name of joined.names) if (!found.has(shortName(name))) found.set(shortName(name), m);
  }
  return found;
}
