/** A week in figures: what was lost to what and where, who broke again, how right the verdicts were. */
import { groupBy } from "../base/group-by.ts";
import { type Handling, rootOf } from "./handling.ts";
import type { Incident } from "./incident.ts";

export interface Digest {
  readonly fromMs: number;
  readonly toMs: number;
  /** Open in the time, opened before or not. */
  readonly incidents: number;
  /** In the time. */
  readonly wastedGpuMs: number;
  /** The costliest first. */
  readonly byCause: readonly Share[];
  readonly byMachine: readonly Share[];
  /** Machines with more than one incident. */
  readonly repeated: readonly Share[];
  /** Of those opened in the time. */
  readonly judged: { readonly right: number; readonly wrong: number };
  /** Whether more incidents fell into the time than were looked at. */
  readonly isCut: boolean;
}

export interface Share {
  readonly name: string;
  readonly incidents: number;
  readonly wastedGpuMs: number;
}

const MOST_ROWS = 20;

/** A time that is looked at, its end not in it. `nowMs`: until when incidents that are open have lost what they say. */
export interface DigestTimes {
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
}

/** Those that are the same, as one. */
interface Counted {
  /** The one that the others are merged into, where it is among these. */
  readonly first: Incident;
  readonly judgement: Handling["judgement"];
  readonly wastedGpuMs: number;
}

/** Incidents that were open in the time, with what was lost in it; those that are the same count once. */
export function digestOf(
  incidents: readonly Incident[],
  handlings: ReadonlyMap<string, Handling>,
  times: DigestTimes,
  isCut: boolean,
): Digest {
  const { fromMs, toMs } = times;
  const inTime = incidents.filter(
    (one) =>
      one.openedMs < toMs &&
      (one.openedMs >= fromMs || endOf(one, times) > fromMs) &&
      // A suspicion that proved nothing is no incident.
      (one.state !== "suspected" || one.verdict !== null),
  );
  const own = [...groupBy(inTime, ({ id }) => rootOf(handlings, id))].map(([root, same]) =>
    countedOf(same, root, handlings, times),
  );
  // Of those that went on from before it was told before.
  const judgements = own.flatMap(({ first, judgement }) =>
    judgement !== null && first.openedMs >= fromMs ? [judgement] : [],
  );
  const right = judgements.filter(({ isRight }) => isRight).length;
  const causeOf = ({ first, judgement }: Counted): string[] => [
    judgement?.cause ?? first.verdict?.suspects[0]?.cause ?? "unknown",
  ];
  /** What a person said counts; a machine that was accused wrongly is not listed. */
  const machinesOf = ({ first, judgement }: Counted): readonly string[] => {
    if (!judgement || judgement.isRight) return first.machines;
    return judgement.machine === null ? [] : [judgement.machine];
  };
  const byMachine = shares(own, machinesOf);
  return {
    fromMs,
    toMs,
    incidents: own.length,
    wastedGpuMs: own.reduce((sum, { wastedGpuMs }) => sum + wastedGpuMs, 0),
    byCause: shares(own, causeOf).slice(0, MOST_ROWS),
    byMachine: byMachine.slice(0, MOST_ROWS),
    repeated: byMachine
      .filter((share) => share.incidents > 1)
      .sort((a, b) => b.incidents - a.incidents)
      .slice(0, MOST_ROWS),
    judged: { right, wrong: judgements.length - right },
    isCut,
  };
}

function countedOf(
  same: readonly Incident[],
  root: string,
  handlings: ReadonlyMap<string, Handling>,
  times: DigestTimes,
): Counted {
  const all = [...same].sort((a, b) => a.openedMs - b.openedMs);
  const first = all.find(({ id }) => id === root) ?? all[0]!;
  const judgements = [first, ...all].flatMap(({ id }) => handlings.get(id)?.judgement ?? []);
  return {
    first,
    judgement: judgements[0] ?? null,
    // Each is of another job, as a rule: what they lost, they lost both.
    wastedGpuMs: all.reduce((sum, one) => sum + wasteIn(one, times), 0),
  };
}

function endOf({ resolvedMs }: Incident, { nowMs }: DigestTimes): number {
  return resolvedMs ?? nowMs;
}

/** Only what an incident lost in all is known: as if it had lost as much in each hour that it was open. */
function wasteIn(incident: Incident, times: DigestTimes): number {
  const { openedMs, wastedGpuMs } = incident;
  const endMs = endOf(incident, times);
  if (endMs <= openedMs) return wastedGpuMs;
  const inMs = Math.min(endMs, times.toMs) - Math.max(openedMs, times.fromMs);
  return (wastedGpuMs * inMs) / (endMs - openedMs);
}

function shares(
  incidents: readonly Counted[],
  namesOf: (incident: Counted) => readonly string[],
): Share[] {
  const found = new Map<string, Share>();
  for (const incident of incidents) {
    const names = new Set(namesOf(incident));
    for (const name of names) {
      const known = found.get(name) ?? { name, incidents: 0, wastedGpuMs: 0 };
      found.set(name, {
        name,
        incidents: known.incidents + 1,
        wastedGpuMs: known.wastedGpuMs + incident.wastedGpuMs / names.size,
      });
    }
  }
  return [...found.values()].sort(
    (a, b) =>
      b.wastedGpuMs - a.wastedGpuMs || b.incidents - a.incidents || (a.name < b.name ? -1 : 1),
  );
}
