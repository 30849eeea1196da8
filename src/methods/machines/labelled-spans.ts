/** Labels of people, found again in the metrics of a task: whom and when they are about. */
import { groupBy } from "../../base/group-by.ts";
import { shortName } from "../../model/machine-names.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { MachineLabel } from "../../model/machine-labels.ts";
import type { LabelledSpan } from "./minder/prioritise.ts";

/** Less of a span says nothing. */
const LEAST_S = 60;

export interface MatchedLabels {
  readonly spans: readonly LabelledSpan[];
  readonly matched: ReadonlySet<MachineLabel>;
  /** Those that say faulty and healthy of one machine at one time: none of them counts. */
  readonly contradictory: ReadonlySet<MachineLabel>;
}

interface Found extends LabelledSpan {
  readonly of: readonly MachineLabel[];
}

/** The time before the first fault of a task counts as healthy: what was wrong earlier would have been labelled. */
export function matchLabels(fleet: Fleet, labels: readonly MachineLabel[]): MatchedLabels {
  const [startS, endS] = timesOf(fleet);
  const indexOf = namesOf(fleet);
  const found: Found[] = [];
  for (const label of labels) {
    const { machine: name, isFaulty } = label;
    const machine = name === null ? null : indexOf.get(shortName(name));
    const [fromS, toS] = [Math.max(label.fromS, startS), Math.min(label.toS, endS)];
    if (machine === undefined || toS - fromS < LEAST_S) continue;
    found.push({ fromS, toS, isFaulty, machine, of: [label] });
  }
  const once = joined(found);
  const wrong = new Set(once.filter((one) => once.some((other) => contradict(one, other))));
  const spans = once
    .filter((one) => !wrong.has(one))
    .map(({ fromS, toS, isFaulty, machine }): LabelledSpan => ({ fromS, toS, isFaulty, machine }));
  const faultyS = found.filter(({ isFaulty }) => isFaulty).map(({ fromS }) => fromS);
  const firstS = faultyS.reduce((least, fromS) => Math.min(least, fromS), Infinity);
  const isOpen = !found.some(({ isFaulty, fromS }) => !isFaulty && fromS < firstS);
  if (isOpen && spans.some(({ isFaulty }) => isFaulty) && firstS - startS >= 2 * LEAST_S)
    spans.push({ fromS: startS, toS: firstS - 1, isFaulty: false, machine: null });
  return {
    spans,
    matched: new Set(found.flatMap((one) => one.of)),
    contradictory: new Set([...wrong].flatMap((one) => one.of)),
  };
}

/** What is said twice of a machine counts once: spans of one state that overlap become one. */
function joined(found: readonly Found[]): readonly Found[] {
  const same = groupBy(found, ({ machine, isFaulty }) => `${machine} ${isFaulty}`);
  return [...same.values()].flatMap((spans) => {
    const all: Found[] = [];
    for (const span of spans.toSorted((a, b) => a.fromS - b.fromS)) {
      const last = all.at(-1);
      if (!last || span.fromS > last.toS) all.push(span);
      else {
        const toS = Math.max(last.toS, span.toS);
        all[all.length - 1] = { ...last, toS, of: [...last.of, ...span.of] };
      }
    }
    return all;
  });
}

/** Faulty and healthy at one time; that all were healthy contradicts each that was faulty. */
function contradict(a: Found, b: Found): boolean {
  const [healthy, faulty] = a.isFaulty ? [b, a] : [a, b];
  if (healthy.isFaulty || !faulty.isFaulty) return false;
  if (healthy.machine !== null && healthy.machine !== faulty.machine) return false;
  return Math.min(a.toS, b.toS) - Math.max(a.fromS, b.fromS) >= LEAST_S;
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
