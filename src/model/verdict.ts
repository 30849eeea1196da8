import type { Answer } from "./answer.ts";
import type { Cause, Owner } from "./cause.ts";
import type { Finding, SuspectType, VerdictKind } from "./finding.ts";
import type { Rank } from "./ids.ts";
import type { Mitigation } from "./mitigation.ts";
import type { Reasoning } from "./reasoning.ts";

export interface Suspect {
  readonly type: SuspectType;
  /** Every rank that the suspect covers. */
  readonly ranks: readonly Rank[];
  readonly machine: string | null;
  /** Of a network device between several machines: theirs. */
  readonly machines?: readonly string[];
  readonly link: readonly [string, string] | null;
  /** What the device is called ("leaf3", "node003/mlx5_2"), where it has a name. */
  readonly name: string | null;
  readonly cause: Cause;
  /** Scores of all suspects add up to at most 1. */
  readonly score: number;
  readonly why: string;
  /** Ids of findings. */
  readonly evidence: readonly string[];
}

export interface Action {
  /** A word for machines: "restart-job", "replace-machine", "fix-code", … */
  readonly do: string;
  /** What people read in place of `do`, where its own words do not fit: "Check the data loader". */
  readonly title?: string;
  readonly target: string;
  readonly why: string;
  /** What to paste into a shell: "ssh node002 nvidia-smi -i 5 -q"; absent where no command does it. */
  readonly command?: string;
}

export interface VerdictInput {
  readonly path: string;
  readonly format: string;
  readonly rank: Rank | null;
  readonly records: number;
}

/** The document of `diagnose --json`; its names are fixed by the contract. */
export interface Verdict {
  readonly schema: "faultline.verdict/1";
  /** The job's name; absent where nothing says it. */
  readonly job?: string;
  readonly kind: VerdictKind;
  readonly summary: string;
  /** The summary in its parts; absent in verdicts of older versions. */
  readonly answer?: Answer;
  /** 0..1, calibrated: of the verdicts at 0.9, nine in ten are right. */
  readonly confidence: number;
  readonly when: {
    readonly iteration: number | null;
    readonly from: string | null;
    readonly to: string | null;
  };
  readonly suspects: readonly Suspect[];
  /** Ranks that show symptoms but are not to blame. */
  readonly victims: readonly Rank[];
  readonly owner: Owner | null;
  readonly actions: readonly Action[];
  /** How to live with it until it is fixed; null where nothing can be planned. */
  readonly mitigation?: Mitigation | null;
  /** How it came about; absent in verdicts of older versions. */
  readonly reasoning?: Reasoning;
  readonly findings: readonly Omit<Finding, "accuses" | "clears">[];
  readonly inputs: readonly VerdictInput[];
  readonly missing: readonly string[];
  readonly wouldHelp: readonly string[];
}
