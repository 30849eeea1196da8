/** How a verdict came about: which findings decided, who disagrees, what would change its mind (verdict/reasoning.ts). */
import type { Cause } from "./cause.ts";
import type { Rank } from "./ids.ts";

export interface Reasoning {
  /** The two or three findings that decided, the strongest first. */
  readonly decidedBy: readonly DecidingFinding[];
  /** What findings say that do not fit the verdict: shown, not averaged away. The likeliest first; most often none. */
  readonly conflicts: readonly Conflict[];
  /** What would change the verdict's mind, a sentence each: something that could be looked at. */
  readonly wouldChange: readonly string[];
  /** How often things of this kind break, before anything was looked at; null where nobody is accused. */
  readonly prior: { readonly share: number | null; readonly says: string } | null;
}

export interface DecidingFinding {
  /** Its id. */
  readonly finding: string;
  /** How many times likelier it made the first suspect, against everybody else. */
  readonly times: number;
}

export interface Conflict {
  /** Who else is accused: "node004", "rank 17", "rank 3 and rank 4". */
  readonly who: string;
  readonly ranks: readonly Rank[];
  readonly machine: string | null;
  readonly cause: Cause;
  /** Of all that may be true, how much this has. */
  readonly probability: number;
  /** Ids of the findings that say so. */
  readonly findings: readonly string[];
  /** Why it was not believed, one sentence. */
  readonly why: string;
}
