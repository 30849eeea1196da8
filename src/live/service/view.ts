/** What the service shows and lets be done, for its HTTP side: nothing here waits for an agent. */
import type {
  AuditQuery,
  AuditRow,
  IncidentQuery,
  IterationRows,
  Offender,
} from "../../history/history.ts";
import type { Question } from "./microbatches/requests.ts";
import type { Health } from "./health.ts";
import type { Digest } from "../../model/digest.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import type { CommentedHandling, Handling, Mute } from "../../model/handling.ts";
import type { Rank } from "../../model/ids.ts";
import type { Incident } from "../../model/incident.ts";
import type { IncidentPicture } from "../../model/picture.ts";
import type {
  AskedRecord,
  ForgottenLogs,
  SiteLabels,
  SiteLogs,
  SiteReport,
} from "../../model/site.ts";
import type { Asked, AskedMute } from "./workflow/deeds.ts";

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
  /** GPU-milliseconds lost in this run so far, by all its incidents, also the one that is open. */
  readonly wastedGpuMs: number;
  /** What is missing or was dropped, a sentence each. */
  readonly lacks: readonly string[];
}

/** A process group, for people who point at a rank. */
export interface GroupView {
  readonly name: string;
  /** The description without its numbers: "TENSOR_PARALLEL". */
  readonly role: string;
  readonly ranks: readonly Rank[];
}

/** The latest iteration of every rank, as columns; NaN where unknown. */
export interface RankColumns {
  /** Changes whenever rank, machine, gpu, a coordinate or a group does: until then only the values need be asked for. */
  readonly layout: string;
  readonly groups: readonly GroupView[];
  readonly rank: readonly Rank[];
  readonly machine: readonly (string | null)[];
  readonly gpu: readonly (number | null)[];
  readonly stage: readonly (number | null)[];
  /** Coordinates, from 0, where groups tell: place in the pipeline, among replicas, among tensor-parallel peers. */
  readonly pipeline: readonly (number | null)[];
  readonly data: readonly (number | null)[];
  readonly tensor: readonly (number | null)[];
  readonly iteration: Float64Array;
  readonly durationMs: Float32Array;
  /** Time outside communication. */
  readonly ownMs: Float32Array;
  readonly waitMs: Float32Array;
  /** Own time beyond what ranks of the same stage typically need; 0 for those that are not late. */
  readonly lateMs: Float32Array;
  /** Of its GPU, degrees Celsius, where a monitoring server is configured that knows. */
  readonly temperature: Float32Array;
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
  | ({ readonly type: "actions" } & SwitchState)
  | { readonly type: "handling"; readonly job: string; readonly handling: Handling }
  | { readonly type: "mutes"; readonly mutes: readonly Mute[] }
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
  /** Seconds from onset to verdict, of the last ones. */
  readonly verdictSeconds: readonly number[];
  readonly droppedPoints: number;
  readonly historyPending: number;
  readonly historyFailures: number;
  readonly alertsSent: number;
  readonly alertFailures: number;
}

export interface AgentView {
  readonly agent: string;
  readonly machine: string;
  readonly version: string;
  /** Its clock less the service's; 0 where it is right. */
  readonly clockOffsetMs: number;
}

/** Whether actions are run at all. */
export interface SwitchState {
  readonly isOn: boolean;
  /** Who switched them off, and when; "" where they are on. */
  readonly says: string;
  /** Whether hooks or drivers are configured: elsewhere there is nothing to switch. */
  readonly canRun: boolean;
}

export type ActionVerb = "approve" | "dismiss" | "undo";

/** What stands in the audit trail. */
export type AuditWord =
  | "propose"
  | "approve"
  | "dismiss"
  | "dry-run"
  | "run"
  | "undo"
  | "outcome"
  | "refuse"
  | "recover"
  | "add-record"
  | "remove-record"
  | "import-logs"
  | "forget-logs"
  | "export-logs"
  | "off"
  | "on"
  | "sign-in"
  | "sign-out"
  | "link"
  | "open-link"
  | "revoke-links"
  | "reload";

/** Read-only links to single incidents (access/links.ts). */
export interface LinksView {
  create(
    incident: string,
    lifeMs: number,
    who: string,
  ): Promise<{ link: string; expiresMs: number }>;
  /** All links of the incident that there are. */
  revoke(incident: string): Promise<void>;
  /** null for what is no link of ours, has expired, was revoked, or whose maker may not share any more. */
  open(link: string): Promise<OpenLink | null>;
}

export interface OpenLink {
  readonly incident: string;
  /** Who made it. */
  readonly who: string;
  readonly expiresMs: number;
}

export interface ServiceView {
  jobs(): readonly JobView[];
  job(job: string): JobView | null;
  ranks(job: string): RankColumns | null;
  /** Recent ones, from memory; older ones, and those of an earlier run, from the history. */
  iterations(
    job: string,
    query: {
      readonly fromMs?: number;
      readonly toMs?: number;
      readonly most: number;
      readonly run?: string;
    },
  ): Promise<IterationRows | null>;
  /** The newest first. */
  incidents(query: Omit<IncidentQuery, "ids">): Promise<readonly Incident[]>;
  incident(id: string): Promise<Incident | null>;
  incidentHistory(id: string): Promise<readonly Incident[]>;
  /** What it is drawn from; null where nothing was kept, or another service keeps it. */
  picture(id: string): Promise<IncidentPicture | null>;
  /** The report of the evidence of a job that stood still or died, one HTML file; null where there is none. */
  report(id: string): Promise<string | null>;
  offenders(sinceMs: number, most: number, jobs?: readonly string[]): Promise<readonly Offender[]>;
  audit(query: AuditQuery): Promise<readonly AuditRow[]>;
  /** Puts a row into the audit trail; rejects where it cannot be written. */
  note(who: string, what: AuditWord, incident: string, detail: string): Promise<void>;
  readonly links: LinksView;
  /** Rejects with Refusal (status and message) where it cannot be. `dryRun`: say what would be run. */
  act(
    incident: string,
    action: string,
    verb: ActionVerb,
    who: string,
    dryRun: boolean,
  ): Promise<Incident>;
  /** What people did about an incident; null where there is no such incident. */
  handling(id: string): Promise<CommentedHandling | null>;
  /** Of the incidents that somebody touched of late, by id. */
  handlings(): ReadonlyMap<string, Handling>;
  /** Rejects with Refusal where it cannot be done. `jobs`: what somebody may see who does not see all. */
  handle(id: string, asked: Asked, who: string, jobs?: readonly string[] | null): Promise<Handling>;
  /** What was lost to what since a moment. */
  digest(sinceMs: number, jobs?: readonly string[]): Promise<Digest>;
  /** Those that are not over. */
  mutes(): readonly Mute[];
  /** `says`: why it may cover less than was meant; absent where nothing speaks for that. */
  mute(asked: AskedMute, who: string): Promise<Mute & { readonly says?: string }>;
  unmute(id: string, who: string): Promise<readonly Mute[]>;
  /** How right verdicts were here, or in these jobs, and what was learnt. */
  site(jobs?: readonly string[]): Promise<SiteReport>;
  /** Judged incidents as labels of machines. */
  siteLabels(jobs?: readonly string[]): Promise<SiteLabels>;
  /** Of a line that nobody knew. Rejects with Refusal where healthy jobs log it, too. */
  addRecord(asked: AskedRecord, who: string): Promise<FaultRecord>;
  removeRecord(id: string, who: string): Promise<SiteLogs>;
  /** What was learnt of logs, without names; `texts`: also what people and programs wrote. */
  exportSite(texts: boolean): Promise<unknown>;
  importSite(document: unknown, who: string, from: string): Promise<SiteLogs>;
  /** Rejects with Refusal where it was not learnt or imported. */
  forgetLogs(what: ForgottenLogs, who: string): Promise<SiteLogs>;
  actionsSwitch(): SwitchState;
  /** Switches all actions off or on, for good. Rejects with Refusal where the configuration forbids it. */
  switchActions(isOn: boolean, who: string): Promise<SwitchState>;
  /** What a job wants to know of its micro-batches, or says of them; rejects with Refusal. */
  askShares(job: string, question: Question): Promise<unknown>;
  /** Returns how to stop listening. */
  listen(listener: (event: LiveEvent) => void): () => void;
  /** null where the caller sees a part of the service only. */
  stats(): ServiceStats | null;
  /** Agents that are connected, by name. */
  agents(): readonly AgentView[];
  /** For /healthz. */
  health(): Promise<Health>;
}

/** A job that can be broken to see it being found: of the demonstration, absent elsewhere. */
export interface DemoControl {
  state(): DemoState;
  /** Throws UserError for what cannot be broken. */
  breakIt(what: DemoFault): DemoState;
  mend(): DemoState;
  restart(): Promise<DemoState>;
}

export interface DemoFault {
  readonly kind: "gpu" | "link" | "nic" | "data-loader" | "machine";
  /** Any where it is absent. */
  readonly rank?: number | undefined;
}

export interface DemoState {
  readonly job: string;
  readonly gpus: number;
  /** The iteration that runs. */
  readonly iteration: number;
  readonly isHung: boolean;
  /** Whether the service has seen enough of the healthy job to notice. */
  readonly isReady: boolean;
  /** The truth: what is broken now. */
  readonly faults: readonly {
    readonly id: number;
    readonly kind: DemoFault["kind"];
    /** "GPU of rank 17 on node002 computes at a third of its pace" */
    readonly says: string;
    readonly ranks: readonly Rank[];
    readonly machine: string | null;
    readonly sinceMs: number;
  }[];
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
