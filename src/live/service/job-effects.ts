/** What a watched job needs from the service, and what of it must outlive the process. */
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type { Verdict } from "../../model/verdict.ts";
import type { JobIteration, JobRun } from "./job-run.ts";
import type { SuspectedSlowdown } from "./slowdown-detector.ts";

/** What a search, or the evidence of a job that stands still, came to. */
export interface Diagnosis {
  readonly verdict: Verdict;
  /** May come after the verdict, which does not wait for it. */
  readonly picture?: IncidentPicture | Promise<IncidentPicture> | null;
  /** Of the evidence, by its path. */
  readonly folder?: string;
}

export interface JobEffects {
  nowMs(this: void): number;
  /** Resolves when the record is safe. */
  save(this: void, incident: Incident): Promise<void>;
  /** `since`: iterations of the whole job before this one (JobRun.pushes) are another story. */
  localize(
    this: void,
    run: JobRun,
    suspicion: SuspectedSlowdown,
    since: number,
    isAgain: boolean,
  ): Promise<Diagnosis | null>;
  collect(
    this: void,
    run: JobRun,
    kind: "hang" | "crash",
    ranks: readonly Rank[],
  ): Promise<Diagnosis | null>;
  /** The incident's record is saved, and this is what it was made of. */
  found(this: void, incident: Incident, found: Diagnosis): void;
  counted(this: void, run: JobRun, iterations: readonly JobIteration[]): void;
  trouble(this: void, line: string): void;
}

export interface JobWatchOptions {
  readonly hangMs: number;
  /** One that was over and comes back within this time with the same suspects is the same incident. */
  readonly relapseMs: number;
}

/** What must outlive this process; see JobDocument in job-document.ts. */
export interface SavedJobState {
  readonly run: string;
  readonly startedMs: number;
  readonly worldSize: number;
  readonly baselineMs: number | null;
  readonly slow: Incident | null;
  readonly still: Incident | null;
  readonly recent: Incident | null;
  /** Those resolved before it: people may still have to be told. */
  readonly earlier: readonly Incident[];
  /** GPU-milliseconds lost in this run by incidents that are over; absent in documents of older services. */
  readonly wastedGpuMs?: number;
  readonly lastIteration: number;
  /** When an agent told of it last, and whether all have said that it is over. */
  readonly seenMs: number;
  readonly hasEnded: boolean;
}
