/** All lines of one record: who said it, when first, and how much it weighs as the job's cause. */
import { getOrInsert } from "../../base/group-by.ts";
import type { FaultMatch } from "../../library/matcher.ts";
import type { CausalRole, FaultRecord } from "../../model/fault-record.ts";
import type { LogDigest } from "../../model/log-digest.ts";
import type { LogNodes } from "./nodes.ts";

export interface SignatureGroup {
  readonly record: FaultRecord;
  /** Kept lines, in order. */
  readonly lines: readonly number[];
  readonly nodes: ReadonlySet<number>;
  readonly ranks: ReadonlySet<number>;
  readonly captures: Readonly<Record<string, string>>;
  readonly firstMs: number;
  /** Whether each of its lines was settled: its writer went on, or said that it would. */
  readonly isSettled: boolean;
}

/** How much each role says about the cause. */
const ROLE_WEIGHT: Readonly<Record<CausalRole, number>> = {
  root: 1,
  confirmation: 0.45,
  cascade: 0.35,
  benign: 0,
  advice: 0,
};

export function signatureGroups(
  digest: LogDigest,
  known: readonly (FaultMatch | null)[],
  isLeftOut: (kept: number) => boolean,
  isSettled: Uint8Array,
  nodes: LogNodes,
): SignatureGroup[] {
  const groups = new Map<
    string,
    {
      record: FaultRecord;
      lines: number[];
      nodes: Set<number>;
      ranks: Set<number>;
      captures: Record<string, string>;
      firstMs: number;
      isSettled: boolean;
    }
  >();
  known.forEach((match, i) => {
    if (!match || ROLE_WEIGHT[match.record.role] === 0 || isLeftOut(i)) return;
    const { stream, timeMs } = digest.kept[i]!;
    const group = getOrInsert(groups, match.record.id, () => ({
      record: match.record,
      lines: [],
      nodes: new Set<number>(),
      ranks: new Set<number>(),
      captures: {},
      firstMs: NaN,
      isSettled: true,
    }));
    group.lines.push(i);
    if (isSettled[i] === 0) group.isSettled = false;
    const node = nodes.of[stream]!;
    if (node >= 0) group.nodes.add(node);
    const { rank } = digest.streams[stream]!;
    if (rank !== null) group.ranks.add(rank);
    group.captures = { ...match.captures, ...group.captures };
    if (!(group.firstMs <= timeMs)) group.firstMs = timeMs;
  });
  return [...groups.values()];
}

/** What its writer lived through may still be what broke, where nothing else tells: a guess. */
export const SETTLED = 0.5;

export function weightOf({ record, isSettled }: SignatureGroup): number {
  return record.certainty * ROLE_WEIGHT[record.role] * (isSettled ? SETTLED : 1);
}
