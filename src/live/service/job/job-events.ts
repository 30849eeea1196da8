/** What happens to a job, and what is to be done about it: the events and decisions of job-reducer.ts. */
import type { Rank } from "../../../model/ids.ts";
import type { Incident, IncidentEnding } from "../../../model/incident.ts";
import type { IncidentPicture } from "../../../model/picture.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { BeatReport, EventReport, JobReport, PointsReport } from "../../wire/messages.ts";
import type { LiveCulprit, LiveJudgement } from "../../../model/live-judgement.ts";
import type { GroupTests } from "../../../pipeline/group-tests.ts";
import type { JobIteration } from "./job-iterations.ts";
import type { JobRun } from "./job-run.ts";
import type { Unheard } from "./partial-view.ts";
import type { Slowdown } from "../slowdown/pace-watch.ts";
import type { Validated } from "../slowdown/validate-group.ts";

/** Agents that are connected now. */
export type ConnectedAgents = Pick<ReadonlySet<string>, "has">;

export interface Incidents {
  /** The open ones: the job is slow, with the culprit found last; it stands still. */
  readonly slow: Incident | null;
  /** Culprits found before that one and still slow, the newest first; empty where `slow` is null. */
  readonly besides: readonly Incident[];
  readonly still: Incident | null;
  /** The one resolved last. */
  readonly recent: Incident | null;
}

/** What the judge's word, or the evidence of a job that stands still, came to. */
export interface Diagnosis {
  readonly verdict: Verdict;
  /** May come after the verdict, which does not wait for it. */
  readonly picture?: IncidentPicture | Promise<IncidentPicture> | null;
  /** Of a slow network: sends on the wire show which link or NIC it is. */
  readonly isOnWire?: boolean;
  /** What tests of GPUs and links would tell; null where they would not. */
  readonly tests?: GroupTests | null;
  /** Where the evidence lies. */
  readonly folder?: string;
}

/** The evidence of a job that stands still. */
export interface Collected {
  /** null where nobody had any. */
  readonly diagnosis: Diagnosis | null;
  /** Who answered, if only that there is none. */
  readonly answered: ConnectedAgents;
}

export type JobEvent = Readonly<{ nowMs: number } & JobEventKind>;
type JobEventKind =
  | {
      type: "job";
      agent: string;
      machine: string;
      report: JobReport;
      connected: ConnectedAgents;
    }
  | { type: "points"; agent: string; report: PointsReport }
  | { type: "beat"; agent: string; beat: BeatReport["jobs"][number] }
  | { type: "event"; agent: string; report: EventReport }
  | { type: "agent-gone"; agent: string }
  /** By how much the next tick is late. */
  | { type: "late"; ms: number }
  | { type: "tick" }
  /** The actions of an incident changed: its record has a later revision. */
  | { type: "actions"; incident: Incident }
  | { type: "saved"; save: SaveDecision }
  /** Of a run. Each session (slowdown/judge-host.ts) counts its culprits from anew; below zero: with uneven micro-batches. */
  | { type: "judged"; run: string; session: number; judgement: LiveJudgement }
  | { type: "explained"; explain: ExplainDecision; diagnosis: Diagnosis }
  /** `answered` is absent where the collection failed. */
  | ({ type: "collected"; evidence: CollectDecision } & Pick<Collected, "diagnosis"> &
      Partial<Pick<Collected, "answered">>)
  | { type: "validated"; id: string; validated: Validated }
  /** The job's code became slower; is as fast as before. */
  | { type: "regression"; verdict: Verdict; sinceMs: number }
  | { type: "regression-over"; why: "as-before" | "other-work" }
  | { type: "profiled"; id: string; diagnosis: Diagnosis }
  /** Replicas take shares of their own, or equal ones again. */
  | { type: "rebalanced"; shares: string | null }
  /** A decision could not be carried out. */
  | { type: "failed" };

export type EventOf<T extends JobEvent["type"]> = Extract<JobEvent, { readonly type: T }>;

export interface SaveDecision {
  readonly do: "save";
  readonly incident: Incident;
  /** The incidents to show once the record is safe. */
  readonly shown: Incidents;
  /** Whether the steps wait for it, and the one that follows at once. */
  readonly isStep: boolean;
  readonly next: JobStep | null;
}

/** A verdict is to be made of what the judge says of a culprit. */
export interface ExplainDecision {
  readonly do: "explain";
  readonly run: JobRun;
  /** In JobState.culprits. */
  readonly key: string;
  /** null: iterations take longer, and nothing is judged. */
  readonly culprit: LiveCulprit | null;
  readonly slowdown: Slowdown;
  /** It has been explained before, and the judge says something else of it since. */
  readonly isAgain: boolean;
  /** Ranks that other open incidents accuse, and what an iteration takes where nobody is slow. */
  readonly accused: ReadonlySet<Rank>;
  readonly usualMs: number;
  /** Who was not heard then: on a busy machine agents seem to be gone meanwhile. */
  readonly unheard: Unheard;
}

export interface CollectDecision {
  readonly do: "collect";
  readonly run: JobRun;
  /** Of the incident. */
  readonly id: string;
  readonly kind: "hang" | "crash";
  readonly ranks: readonly Rank[];
  readonly says: string;
  /** How often it was collected before; absent for the first time. */
  readonly times?: number;
}

/** Nothing waits for it: the tests come after some iterations. */
export interface ValidateDecision {
  readonly do: "validate";
  readonly run: JobRun;
  /** Of the incident. */
  readonly id: string;
  readonly tests: NonNullable<Diagnosis["tests"]>;
  /** What one takes at present. */
  readonly iterationMs: number;
  readonly limitMs: number;
}

/** Nothing waits for it. */
export interface ProfileDecision {
  readonly do: "profile";
  readonly run: JobRun;
  /** Of the incident. */
  readonly id: string;
  readonly verdict: Verdict;
}

export interface PublishDecision {
  readonly do: "publish";
  readonly incident: Incident;
  readonly diagnosis: Diagnosis;
}

export type JobDecision =
  | SaveDecision
  | ExplainDecision
  | CollectDecision
  | ValidateDecision
  | ProfileDecision
  /** The incident's record is saved, and this is what it was made of. */
  | PublishDecision
  | Readonly<{ do: "record-iterations"; run: JobRun; iterations: readonly JobIteration[] }>
  /** The report names ranks of another agent: which, and how many rows. */
  | Readonly<{ do: "refuse"; ranks: readonly Rank[]; rows: number }>;

/** A change of incidents, made when its turn comes: something else may be under way. */
export type JobStep = Readonly<
  | { step: "save"; incident: Incident }
  | {
      step: "confirm";
      which: "slow" | "still";
      /** The incident that it is about; absent: the one there is by then. */
      id?: string;
      diagnosis: Diagnosis;
      slowdown?: Slowdown;
      atMs: number;
    }
  /** All slowdowns, or the standstill. */
  | { step: "resolve"; which: "slow" | "still"; ending: IncidentEnding; says: string }
  /** Ranks that another incident accuses by now do not only wait. */
  | { step: "clear-victims"; id: string; ranks: ReadonlySet<Rank> }
  /** One slowdown of several. */
  | { step: "resolve-one"; id: string; ending: IncidentEnding; says: string }
  /** The judge takes its word back: once whoever it names instead has an incident. */
  | { step: "withdraw"; id: string }
  /** Of JobState.culprits. */
  | { step: "explain"; key: string }
  | { step: "decide"; decision: CollectDecision }
  | { step: "publish"; decision: PublishDecision }
  | { step: "validate"; run: JobRun; tests: NonNullable<Diagnosis["tests"]>; iterationMs: number }
  | { step: "validated"; id: string; validated: Validated; atMs: number }
>;
