/**
 * The stuck operators that hang/wait-graph recorded. `Finding.data` is free form, so everything is
 * checked here once; what does not fit is left out.
 */
import type { Rank } from "./ids.ts";
import type { Verdict } from "./verdict.ts";

/** silent: no dump; not-enqueued: never issued the operator; behind: issued it, stuck earlier. */
export const ABSENCES = ["silent", "not-enqueued", "behind"] as const;
export type Absence = (typeof ABSENCES)[number];

export interface WaitOp {
  /** "all_reduce #241 of DATA_PARALLEL_1" */
  readonly what: string;
  readonly role: string;
  readonly isP2p: boolean;
  /** Ranks that are in it. */
  readonly arrived: readonly Rank[];
  /** Members that are not. */
  readonly absent: readonly { readonly rank: Rank; readonly why: Absence }[];
}

export interface WaitOps {
  readonly findingId: string;
  readonly ops: readonly WaitOp[];
  /** Operators that are stuck, including those that the finding does not list. */
  readonly stuckOps: number;
}

export function readWaitOps(verdict: Verdict): WaitOps | null {
  for (const { id, method, data } of verdict.findings) {
    const listed: unknown = data["ops"];
    if (method !== "hang/wait-graph" || !Array.isArray(listed)) continue;
    const ops = listed.flatMap((op: unknown) => readOp(op) ?? []);
    if (ops.length === 0) continue;
    const stuckOps = data["stuckOps"];
    const total = typeof stuckOps === "number" ? Math.max(stuckOps, ops.length) : ops.length;
    return { findingId: id, ops, stuckOps: total };
  }
  return null;
}
function readOp(op: unknown): WaitOp | null {
  if (!isRecord(op)) return null;
  const { what, role, p2p, arrived, absent } = op;
  if (typeof what !== "string" || !Array.isArray(arrived) || !Array.isArray(absent)) return null;
  return {
    what,
    role: typeof role === "string" ? role : "",
    isP2p: p2p === true,
    arrived: [...new Set(arrived.filter(isRank))],
    absent: absent.flatMap((entry: unknown) => {
      if (!isRecord(entry) || !isRank(entry["rank"])) return [];
      return { rank: entry["rank"], why: readAbsence(entry["why"]) };
    }),
  };
}

function readAbsence(why: unknown): Absence {
  return ABSENCES.find((word) => word === why) ?? "behind";
}

function isRank(value: unknown): value is Rank {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null;
}
