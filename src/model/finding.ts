import type { Cause } from "./cause.ts";
import type { Fact } from "./facts.ts";
import type { MethodId } from "./method.ts";
import type { Place, Rank } from "./ids.ts";

/** What one method saw, where, and how sure it is. */
export interface Finding {
  /** "f1", "f2", … given by the pipeline. */
  readonly id: string;
  readonly method: MethodId;
  /** One sentence. */
  readonly says: string;
  /** 0..1: how much the method would bet on what `accuses` says. */
  readonly weight: number;
  readonly at: readonly Place[];
  /** What was seen, in figures. */
  readonly data: Fact;
  /** The hypotheses that the finding supports; empty for context. */
  readonly accuses: readonly Accusation[];
  /** Ranks that the finding shows to be waiting, not at fault. */
  readonly clears: readonly Rank[];
  /** What the method lacked and would have needed to be surer, a sentence each. */
  readonly lacks?: readonly string[];
}

/** (component, cause): who, and what is wrong with it. */
export interface Accusation {
  readonly kind: VerdictKind;
  readonly type: SuspectType;
  readonly ranks: readonly Rank[];
  readonly link: readonly [string, string] | null;
  /** What the device is called ("leaf3", "node003/mlx5_2"), where it has a name. */
  readonly name?: string | null;
  readonly cause: Cause;
  /** 0..1 */
  readonly weight: number;
  readonly why: string;
}

/** A finding as a method hands it over, before the pipeline numbers it. */
export type NewFinding<Stated extends Fact = Fact> = Omit<Finding, "id" | "method" | "data"> & {
  readonly data: Stated;
};

export type SuspectType =
  | "rank"
  | "gpu"
  | "machine"
  | "nic"
  | "link"
  | "switch"
  | "stage"
  | "code"
  | "data"
  | "config"
  | "storage";

export type VerdictKind =
  | "hang"
  | "crash"
  | "fail-slow"
  | "regression"
  | "faulty-machine"
  | "healthy"
  | "undetermined";
