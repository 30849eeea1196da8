/** A block as the judge keeps it. */
import type { Usual } from "./baseline.ts";
import type { Block } from "./online-judge.ts";

export interface KeptBlock {
  /** Counts usable blocks. */
  readonly number: number;
  readonly startMs: number;
  readonly block: Block;
  /** By kind of comparison (kinds.ts), and in that by series: how far the rank is from its peers. */
  readonly apart: readonly Float32Array[];
  /** Operators issued a millisecond, of a rank on average. */
  readonly pace: number;
  /** Whether the judge may learn from it what is usual, and whether it has. */
  isQuiet: boolean;
  isLearnt: boolean;
  /** Of a fault that was named: never learnt from. */
  isNamed: boolean;
  /** What was usual before this block, by kind; null while that is not known. */
  usual: readonly Usual[] | null;
}
