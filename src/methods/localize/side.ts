/**
 * Whether a rank's own time grew on its CPU or on its GPU. A slow GPU leaves the CPU's calls as they were, far
 * ahead of it; a slow CPU spreads them out.
 */
import { median } from "../../maths/robust.ts";
import type { Cause } from "../../model/cause.ts";
import type { RankOperators } from "../../model/rank-operators.ts";
import type { Account } from "./accounts.ts";
import type { OwnTimeSuspect } from "./own-time.ts";

/** The CPU's calls take so much longer, and explain so much of the own time's growth. */
const SPREAD_OUT = 1.4;
const EXPLAINS = 0.5;
/** A data loader holds up a few places of an iteration: the first call of each micro-batch. */
const FEW_PLACES = 0.12;
const MOST_OF_IT = 0.8;

export interface Side {
  readonly cause: Cause;
  /** Milliseconds that the CPU's calls of an iteration span. */
  readonly issueMs: readonly [before: number, after: number];
  /** 0..1: how sure the side is. */
  readonly certainty: number;
}

export function sideOf(
  suspect: OwnTimeSuspect,
  account: Account,
  operators: RankOperators,
  peers: readonly Account[],
): Side {
  const slow = new Set(suspect.slow);
  const at = (wanted: boolean): number[] =>
    [...account.iteration.keys()].filter(
      (i) => account.iteration[i]! > 2 && slow.has(i) === wanted,
    );
  const after = median(at(true).map((i) => account.issueMs[i]!));
  // A rank that was slow from the start is compared with its peers.
  const normal = at(false).map((i) => account.issueMs[i]!);
  const before =
    normal.length >= 4
      ? median(normal)
      : median(
          peers
            .filter((peer) => peer.program === account.program)
            .map((peer) => median(peer.issueMs)),
        );
  const growth = suspect.afterMs - suspect.beforeMs;
  const isCpu = after > SPREAD_OUT * before && after - before > EXPLAINS * growth;
  if (!isCpu) return { cause: "gpu-slow", issueMs: [before, after], certainty: 0.9 };
  const places = placesOfDelay(operators, at(false), at(true));
  const cause = places !== null && places <= FEW_PLACES ? "dataloader" : "cpu-stall";
  return { cause, issueMs: [before, after], certainty: cause === "dataloader" ? 0.75 : 0.9 };
}

/** Share of the places in an iteration at which most of the CPU's delay arises; null where it cannot be told. */
function placesOfDelay(
  { ops, from, to }: RankOperators,
  normal: readonly number[],
  slow: readonly number[],
): number | null {
  if (normal.length < 4 || slow.length < 3) return null;
  const length = to[slow[0]!]! - from[slow[0]!]!;
  const gaps = (i: number): number[] | null => {
    if (to[i]! - from[i]! !== length) return null;
    // The gap in front of the first call belongs to the iteration: the first batch is fetched there.
    return Array.from({ length }, (_, k) => {
      const op = from[i]! + k;
      return op > 0 ? (ops.createdNs[op]! - ops.createdNs[op - 1]!) / 1e6 : 0;
    });
  };
  const typical = (list: readonly number[]): number[] => {
    const all = list.flatMap((i) => {
      const one = gaps(i);
      return one ? [one] : [];
    });
    return Array.from({ length }, (_, k) => median(all.map((one) => one[k]!)));
  };
  const [usual, now] = [typical(normal), typical(slow)];
  const delays = now.map((gap, k) => Math.max(0, gap - usual[k]!)).sort((a, b) => b - a);
  const total = delays.reduce((a, b) => a + b, 0);
  if (!(total > 0)) return null;
  let places = 0;
  for (let sum = 0; sum < MOST_OF_IT * total; places++) sum += delays[places]!;
  return places / length;
}
