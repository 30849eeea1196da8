/** A week in figures: what was lost to what and where, who broke again, how right the verdicts were. */
import type { Handling } from "./handling.ts";
import type { Incident } from "./incident.ts";

export interface Digest {
  readonly fromMs: number;
  readonly toMs: number;
  readonly incidents: number;
  readonly wastedGpuMs: number;
  /** The costliest first. */
  readonly byCause: readonly Share[];
  readonly byMachine: readonly Share[];
  /** Machines with more than one incident. */
  readonly repeated: readonly Share[];
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

/** Incidents that were opened in the time; those merged into others count once, with the others. */
export function digestOf(
  incidents: readonly Incident[],
  handlings: ReadonlyMap<string, Handling>,
  fromMs: number,
  toMs: number,
  isCut: boolean,
): Digest {
  const own = incidents.filter(
    ({ id, openedMs, state, verdict }) =>
      openedMs >= fromMs &&
      openedMs <= toMs &&
      // A suspicion that proved nothing is no incident.
      (state !== "suspected" || verdict !== null) &&
      (handlings.get(id)?.mergedInto ?? null) === null,
  );
  const judgements = own.flatMap(({ id }) => handlings.get(id)?.judgement ?? []);
  const right = judgements.filter(({ isRight }) => isRight).length;
  const causeOf = (one: Incident): string[] => {
    const judged = handlings.get(one.id)?.judgement;
    return [judged?.cause ?? one.verdict?.suspects[0]?.cause ?? "unknown"];
  };
  /** What a person said counts; a machine that was accused wrongly is not listed. */
  const machinesOf = ({ id, machines }: Incident): readonly string[] => {
    const judged = handlings.get(id)?.judgement;
    if (!judged || judged.isRight) return machines;
    return judged.machine === null ? [] : [judged.machine];
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

function shares(
  incidents: readonly Incident[],
  namesOf: (incident: Incident) => readonly string[],
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
