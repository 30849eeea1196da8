/** How right verdicts were at a site, by what people said of them, and what the site has learnt. */
import type { Cause } from "./cause.ts";
import type { Category, FaultOwner } from "./fault-record.ts";
import type { SaidThen } from "./handling.ts";

export interface SiteReport {
  readonly schema: "faultline.site/1";
  readonly all: SiteScore;
  /** Kinds of incidents with a judgement, the most judged first. */
  readonly kinds: readonly (SiteScore & { readonly kind: SaidThen["kind"] })[];
  /** Said → true causes of verdicts that were wrong, the most frequent first. */
  readonly confusions: readonly {
    readonly said: Cause | null;
    readonly truth: Cause;
    readonly incidents: number;
  }[];
  /** What the service has learnt of logs; absent where nobody asked a service. */
  readonly logs?: SiteLogs;
}

/** Verdicts that somebody judged; the last judgement of an incident counts. */
export interface SiteScore {
  readonly judged: number;
  readonly right: number;
  /** Of the share that was right, at 95 % (Wilson). */
  readonly low: number;
  readonly high: number;
  /** How sure the verdicts were, and how often they were right; bins without a judgement are absent. */
  readonly calibration: readonly {
    readonly from: number;
    readonly to: number;
    readonly judged: number;
    readonly right: number;
    /** Mean confidence. */
    readonly said: number;
  }[];
  /** Mean of |said − right| over the bins, by their judgements. */
  readonly calibrationError: number;
}

export interface SiteLogs {
  /** Jobs that ended well and were learnt from, and the events they log. */
  readonly healthyJobs: number;
  readonly normalEvents: number;
  /** Their names, the oldest first; without those of imports. */
  readonly jobs: readonly string[];
  /** What came from other sites. */
  readonly imports: readonly {
    readonly id: string;
    /** As who imported it said; "" where they did not. */
    readonly from: string;
    readonly who: string;
    readonly atMs: number;
    readonly jobs: number;
    readonly normalEvents: number;
    readonly records: number;
  }[];
  /** The site's own records, and others that people voted on. */
  readonly records: readonly {
    readonly id: string;
    readonly title: string;
    readonly isOwn: boolean;
    readonly confirmed: number;
    readonly disputed: number;
    /** Confidence in the record, with the votes. */
    readonly certainty: number;
  }[];
}

/** Judged incidents as labels of machines (docs/inputs.md). */
export interface SiteLabels {
  readonly schema: "faultline.machine-labels/1";
  readonly labels: readonly {
    readonly machine: string;
    readonly start: string;
    readonly end: string;
    readonly state: "faulty" | "healthy";
    readonly cause: Cause | null;
    readonly incident: string;
  }[];
}

/** What somebody says of a line that nobody knew; the category follows from the cause where it is absent. */
export interface AskedRecord {
  readonly line: string;
  readonly title: string;
  readonly action: string;
  readonly category?: Category;
  readonly cause?: Cause;
  readonly owner?: FaultOwner;
}

/** What is taken back of what was learnt. */
export type ForgottenLogs = { readonly job: string } | { readonly import: string };
