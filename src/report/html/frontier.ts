/**
 * How far every rank got in every group, from the counters of the dumps, against the farthest member
 * of the same group. Suspects come first, then those who wait closest to them.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import type { StuckOperator } from "../../model/facts.ts";

export const COUNTERS = ["enqueued", "started", "completed"] as const;

interface Counter {
  /** Sequence number of the last operator; -1 where unknown. */
  readonly value: number;
  /** How many fewer than the farthest member of the group. */
  readonly lag: number;
}

export interface FrontierCell {
  readonly group: number;
  /** In the order of COUNTERS. */
  readonly counters: readonly Counter[];
  /** Further groups of the same role that the rank is in; the one that lags most is shown. */
  readonly more: number;
}

export interface FrontierColumn {
  readonly role: string;
  /** Whether the groups carry P2P operators: their counters differ between members by design. */
  readonly isMixed: boolean;
  readonly hasLag: boolean;
}

interface FrontierRow {
  readonly rank: Rank;
  readonly isSuspect: boolean;
  /** null where the rank left no dump; a cell is null where the rank is in no such group. */
  readonly cells: readonly (FrontierCell | null)[] | null;
}

interface FrontierTable {
  readonly columns: readonly FrontierColumn[];
  readonly rows: readonly FrontierRow[];
  readonly leftOutRows: number;
}

export function frontierTable(
  job: Job,
  suspects: ReadonlySet<Rank>,
  ops: readonly StuckOperator[],
  mostRows: number,
): FrontierTable {
  const mixed = new Set(job.groups.filter((group) => group.carriesP2p).map(({ role }) => role));
  const farthest = farthestOf(job);
  const roles = [
    ...new Set(job.groups.filter(({ id }) => farthest.has(id)).map(({ role }) => role)),
  ];
  const cellsOf = new Map<Rank, Map<string, FrontierCell>>();
  const lagging = new Set<string>();
  for (const rank of job.dumps.keys()) {
    const cells = rankCells(job, rank, farthest, mixed);
    cellsOf.set(rank, cells);
    for (const [role, cell] of cells) if (lagOf(cell) > 0) lagging.add(role);
  }
  const sorted = [
    ...roles.filter((role) => lagging.has(role)),
    ...roles.filter((role) => !lagging.has(role)),
  ];
  const order = rankOrder(job, suspects, ops);
  return {
    columns: sorted.map((role) => ({ role, isMixed: mixed.has(role), hasLag: lagging.has(role) })),
    rows: order.slice(0, mostRows).map((rank) => {
      const cells = cellsOf.get(rank);
      return {
        rank,
        isSuspect: suspects.has(rank),
        cells: cells ? sorted.map((role) => cells.get(role) ?? null) : null,
      };
    }),
    leftOutRows: Math.max(0, order.length - mostRows),
  };
}

/** Group → its greatest counters; only groups of at least two members with any counter at all. */
function farthestOf(job: Job): Map<number, number[]> {
  const farthest = new Map<number, number[]>();
  for (const { dump, groupIds } of job.dumps.values()) {
    for (const [index, group] of dump.groups.entries()) {
      const id = groupIds[index]!;
      if ((job.groups[id]?.ranks.length ?? 0) < 2) continue;
      const values = COUNTERS.map((name) => group[name]);
      if (values.every((value) => value < 0)) continue;
      const known = farthest.get(id);
      farthest.set(id, known ? known.map((value, i) => Math.max(value, values[i]!)) : values);
    }
  }
  return farthest;
}

function rankCells(
  job: Job,
  rank: Rank,
  farthest: ReadonlyMap<number, readonly number[]>,
  mixed: ReadonlySet<string>,
): Map<string, FrontierCell> {
  const { dump, groupIds } = job.dumps.get(rank)!;
  const cells = new Map<string, FrontierCell>();
  for (const [index, dumped] of dump.groups.entries()) {
    const group = job.groups[groupIds[index]!];
    const most = group && farthest.get(group.id);
    if (!group || !most) continue;
    const counters = COUNTERS.map((name, i): Counter => {
      const value = dumped[name];
      return { value, lag: value < 0 || mixed.has(group.role) ? 0 : most[i]! - value };
    });
    const cell = { group: group.id, counters, more: 0 };
    const known = cells.get(group.role);
    if (!known) cells.set(group.role, cell);
    else
      cells.set(group.role, {
        ...(lagOf(cell) > lagOf(known) ? cell : known),
        more: known.more + 1,
      });
  }
  return cells;
}

function lagOf(cell: FrontierCell): number {
  return cell.counters.reduce((most, { lag }) => Math.max(most, lag), 0);
}

/** Suspects, then by steps along the wait graph, then by number. */
function rankOrder(job: Job, suspects: ReadonlySet<Rank>, ops: readonly StuckOperator[]): Rank[] {
  const steps = new Map<Rank, number>([...suspects].map((rank) => [rank, 0]));
  let edge = new Set(suspects);
  for (let step = 1; edge.size > 0; step++) {
    const next = new Set<Rank>();
    for (const { arrived, absent } of ops) {
      if (!absent.some(({ rank }) => edge.has(rank))) continue;
      for (const rank of arrived) if (!steps.has(rank)) next.add(rank);
    }
    for (const rank of next) steps.set(rank, step);
    edge = next;
  }
  const all = new Set([...suspects, ...job.ranks.keys(), ...job.dumps.keys()]);
  const far = Infinity;
  return [...all].sort((a, b) => {
    const [stepsA, stepsB] = [steps.get(a) ?? far, steps.get(b) ?? far];
    return stepsA === stepsB ? a - b : stepsA - stepsB;
  });
}
