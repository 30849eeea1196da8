/** What the service shows and lets be done, for its HTTP side: nothing here waits for an agent. */
import type { AuditRow, IterationRows, Offender } from "../../history/history.ts";
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";

export interface JobView {
  readonly job: string;
  readonly run: string;
  readonly startedMs: number;
  readonly seenMs: number;
  readonly worldSize: number;
  /** Ranks that have reported. */
  readonly ranks: number;
  readonly machines: number;
  readonly health: "learning" | "healthy" | "slow" | "hung" | "failed" | "silent" | "ended";
  readonly lastIteration: number;
  /** The level now, and the healthy one; null before they are known. */
  readonly levelMs: number | null;
  readonly baselineMs: number | null;
  /** Id of the open incident. */
  readonly incident: string | null;
  /** What is missing or was dropped, a sentence each. */
  readonly lacks: readonly string[];
}

/** The latest iteration of every rank, as columns; NaN where unknown. */
export interface RankColumns {
  readonly rank: readonly Rank[];
  readonly machine: readonly (string | null)[];
  readonly gpu: readonly (number | null)[];
  readonly stage: readonly (number | null)[];
  readonly iteration: Float64Array;
  readonly durationMs: Float32Array;
  /** Time outside communication. */
  readonly ownMs: Float32Array;
  readonly waitMs: Float32Array;
  /** "running", "stopped", "gone", "silent" by rank. */
  readonly state: readonly string[];
}

/** Told to whoever listens: the page, and tests. */
export type LiveEvent =
  | { readonly type: "job"; readonly job: JobView }
  | { readonly type: "incident"; readonly incident: Incident }
  | {
      readonly type: "iterations";
      readonly job: string;
      readonly run: string;
      readonly rows: {
        readonly iteration: readonly number[];
        readonly endMs: readonly number[];
        readonly durationMs: readonly number[];
      };
    }
  | { readonly type: "agent"; readonly agent: string; readonly connected: boolean }
  | { readonly type: "trouble"; readonly line: string };

export interface ServiceStats {
  readonly startedMs: number;
  readonly agents: number;
  readonly jobs: number;
  readonly ranks: number;
  readonly openIncidents: number;
  readonly incidentsTotal: number;
  readonly points: number;
  readonly reports: number;
  readonly reportBytes: number;
  readonly refusedReports: number;
  readonly fetchedBytes: number;
  readonly localizations: number;
  /** Seconds from onset to verdict of the last localizations. */
  readonly verdictSeconds: readonly number[];
  readonly droppedPoints: number;
  readonly historyPending: number;
  readonly historyFailures: number;
  readonly alertsSent: number;
  readonly alertFailures: number;
  readonly leases: number;
}

export type ActionVerb = "approve" | "dismiss";

export interface ServiceView {
  jobs(): readonly JobView[];
  job(job: string): JobView | null;
  ranks(job: string): RankColumns | null;
  /** Recent ones, from memory; older ones from the history. */
  iterations(
    job: string,
    query: { readonly fromMs?: number; readonly toMs?: number; readonly most: number },
  ): Promise<IterationRows | null>;
  incidents(query: {
    readonly job?: string;
    readonly open?: boolean;
    readonly sinceMs?: number;
    readonly machine?: string;
    readonly most?: number;
  }): Promise<readonly Incident[]>;
  incident(id: string): Promise<Incident | null>;
  incidentHistory(id: string): Promise<readonly Incident[]>;
  offenders(sinceMs: number, most: number): Promise<readonly Offender[]>;
  audit(query: {
    readonly incident?: string;
    readonly most?: number;
  }): Promise<readonly AuditRow[]>;
  /** Rejects with Refusal (status and message) where it cannot be. `dryRun`: say what would be run. */
  act(
    incident: string,
    action: string,
    verb: ActionVerb,
    who: string,
    dryRun: boolean,
  ): Promise<Incident>;
  /** Returns how to stop listening. */
  listen(listener: (event: LiveEvent) => void): () => void;
  stats(): ServiceStats;
  /** null when all is well, else what is not: for /healthz. */
  trouble(): Promise<string | null>;
}

/** A request that is refused: its HTTP status and one sentence. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
  }
}
