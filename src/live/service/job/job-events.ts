/** What happens to a job, and what is to be done about it: the events and decisions of job-reducer.ts. */
import type { Rank } from "../../../model/ids.ts";
import type { Incident, IncidentEnding } from "../../../model/incident.ts";
import type { IncidentPicture } from "../../../model/picture.ts";
import type { Verdict } from "../../../model/verdict.ts";
import type { BeatReport, EventReport, JobReport, PointsReport } from "../../wire/messages.ts";
import type { LiveDiagnosis } from "../../../pipeline/live-slowdown.ts";
import type { JobIteration, JobRun } from "./job-run.ts";
import type { Unheard } from "./partial-view.ts";
import type { SlowdownDecision, SuspectedSlowdown } from "../slowdown/slowdown-detector.ts";
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

/** What a search, or the evidence of a job that stands still, came to. */
export interface Diagnosis {
  readonly verdict: Verdict;
  /** The slowdown as the search saw it: of an intermittent one, the iterations of the culprit alone. */
  readonly slowdown?: SuspectedSlowdown;
  /** May come after the verdict, which does not wait for it. */
  readonly picture?: IncidentPicture | Promise<IncidentPicture> | null;
  /** What tests of GPUs and links would tell; null where they would not. */
  readonly tests?: LiveDiagnosis["tests"];
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
  | { type: "localized"; search: LocalizeDecision; diagnosis: Diagnosis | null }
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

export interface LocalizeDecision extends Omit<
  Extract<SlowdownDecision, { do: "localize" }>,
  "do"
> {
  readonly do: "localize";
  readonly run: JobRun;
  /** Iterations of the whole job before this one (JobRun.pushes) belong to another slowdown. */
  readonly since: number;
  /** Ranks that open incidents accuse. */
  readonly accused: ReadonlySet<Rank>;
  /** Who was not heard when the search began: on a busy machine agents seem to be gone during it. */
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
  | LocalizeDecision
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
  | { step: "suspect"; run: JobRun; slowdown: SuspectedSlowdown }
  | {
      step: "confirm";
      which: "slow" | "still";
      /** The incident that it is about; absent: the one there is by then. */
      id?: string;
      diagnosis: Diagnosis;
      slowdown?: SuspectedSlowdown;
      atMs: number;
    }
  /** All slowdowns, or the standstill. */
  | { step: "resolve"; which: "slow" | "still"; ending: IncidentEnding; says: string }
  /** Ranks that another incident accuses by now do not only wait. */
  | { step: "clear-victims"; id: string; ranks: ReadonlySet<Rank> }
  /** One slowdown of several. */
  | { step: "resolve-one"; id: string; ending: IncidentEnding; says: string }
  | {
      step: "decide";
      decision: Omit<LocalizeDecision, "since" | "accused" | "unheard"> | CollectDecision;
    }
  | { step: "publish"; decision: PublishDecision }
  | { step: "validate"; run: JobRun; tests: NonNullable<Diagnosis["tests"]>; iterationMs: number }
  | { step: "validated"; id: string; validated: Validated; atMs: number }
>;
