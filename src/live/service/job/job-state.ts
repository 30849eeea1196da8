/** The state of one job, which job-reducer.ts changes, and what can be read from it. */
import type { JobReport } from "../../wire/messages.ts";
import { rankWords } from "../../../base/text.ts";
import type { JobFile } from "../../../ingest/job-file.ts";
import type { Rank } from "../../../model/ids.ts";
import type { Unheard } from "./partial-view.ts";
import type { Incident } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import { withWaste } from "../incident/incident-lifecycle.ts";
import type {
  CollectDecision,
  ConnectedAgents,
  Diagnosis,
  Incidents,
  JobStep,
} from "./job-events.ts";
import type { JobRun } from "./job-run.ts";
import { agentlessWords, unheardOf, unheardWords } from "./partial-view.ts";
import type { Resting } from "../slowdown/resting.ts";
import { PaceWatch } from "../slowdown/pace-watch.ts";
import { StandstillDetector, type StandstillOptions } from "../standstill/standstill-detector.ts";

export interface DetectionOptions extends StandstillOptions {
  /** A resolved incident that comes back within this time with the same suspects is the same incident. */
  readonly relapseMs: number;
  /** Tests of GPUs and links that the service asks for by itself; null: never. */
  readonly validation: ValidationOptions | null;
}

export interface ValidationOptions {
  /** A larger group is not tested. */
  readonly mostRanks: number;
  /** The job is not held up again within this time. */
  readonly everyMs: number;
  /** No rank tests for longer. */
  readonly limitMs: number;
}

/**
 * Replaced by every event, except for `run` and what watches it (`pace`, `standstills`): those belong to the state and change in
 * place, because the iterations of 10,000 ranks take 20 MB.
 */
export interface JobState extends Incidents {
  readonly job: string;
  readonly jobFile: JobFile | null;
  readonly options: DetectionOptions;
  readonly run: JobRun | null;
  readonly pace: PaceWatch;
  readonly standstills: StandstillDetector;
  readonly earlier: readonly Incident[];
  /** Whom the judge names now, by its session and number; and the pace, where nothing is judged. */
  readonly culprits: ReadonlyMap<string, NamedCulprit>;
  /** By incident: culprits that are not slow at the moment. */
  readonly resting: ReadonlyMap<string, Resting>;
  /** When the judge last knew enough to judge, milliseconds since 1970, and in which of its sessions. */
  readonly judgedMs: number;
  readonly session: number;
  /** The incidents as they were last saved: nobody is shown what a crash of the service would take back. */
  readonly shown: Incidents;
  readonly baselineMs: number | null;
  /** GPU-milliseconds lost by resolved incidents, in all runs. */
  readonly wastedBefore: number;
  /** What the previous service left; null once an agent has reported the job. */
  readonly saved: SavedJobState | null;
  /** Agents that have reported the job's end on their machine. */
  readonly ended: ReadonlySet<string>;
  /** Milliseconds since 1970 when an agent last reported the job. */
  readonly seenMs: number;
  /** Other runs that agents report: by name and agent. Agents report a run once: it is taken as soon as it is the job's. */
  readonly claims: ReadonlyMap<string, ReadonlyMap<string, ClaimedRun>>;
  readonly pastRuns: ReadonlySet<string>;
  /** The job may stand still: agents are asked for evidence, and people hear of it when that proves it. */
  readonly suspicion: SuspectedStandstill | null;
  /** JobRun.epoch when the job came to a standstill. */
  readonly stillEpoch: number;
  /** Its evidence names nobody, or there is none, and these ranks were not heard: once they are, it is collected again. */
  readonly partialEvidence: {
    readonly evidence: CollectDecision;
    readonly unheard: Pick<Unheard, "ranks" | "agentless">;
    readonly askedMs: number;
  } | null;
  /** The last iteration that the previous service counted in this run, and when it did. */
  readonly countedBefore: { readonly iteration: number; readonly untilMs: number };
  /** How micro-batches are shared out; null: equally. */
  readonly shares: string | null;
  /** What was slow before they were shared out by speed; null where nothing was, or they are equal. */
  readonly relieved: Relieved | null;
  /** When the ranks were last asked to test themselves, milliseconds since 1970. */
  readonly testedMs: number;
  /** Incidents change one step after the other; a step waits while a decision is being carried out. */
  readonly steps: readonly JobStep[];
  readonly isBusy: boolean;
}

/** Somebody whom the judge names, and what people were told of it. */
export interface NamedCulprit {
  /** As the judge said it last; null: iterations take longer, and nothing is judged. */
  readonly culprit: LiveCulprit | null;
  /** Its incident; null before there is one. */
  readonly incident: string | null;
  /** Sends on the wire have shown which link or NIC it is. */
  readonly isOnWire: boolean;
  /** As it was when it was last explained, whether the pace since was known, how often, and when that was. */
  readonly explained: {
    readonly culprit: LiveCulprit | null;
    readonly isPaced: boolean;
    readonly times: number;
    readonly atMs: number;
  } | null;
}

/**
 * With less to do a culprit looks healthy, and the others slow: whether it is over shows with equal shares. What comes meanwhile
 * is another session of the judge's, and another pace.
 */
export interface Relieved {
  readonly pace: PaceWatch;
  readonly incidents: ReadonlySet<string>;
}

/** A standstill that is not proven. */
export interface SuspectedStandstill {
  /** As the incident will be, once it is one. */
  readonly incident: Incident;
  /** What the evidence came to so far. */
  readonly diagnosis: Diagnosis | null;
  readonly isCollecting: boolean;
  /** It has lasted so long that it is an incident once the evidence is there, whatever that shows. */
  readonly isCertain: boolean;
}

export function newJobState(
  job: string,
  jobFile: JobFile | null,
  saved: SavedJobState | null,
  options: DetectionOptions,
): JobState {
  const { slow = null, still = null, recent = null, besides = [] } = saved ?? {};
  return {
    job,
    jobFile,
    options,
    run: null,
    pace: new PaceWatch(),
    standstills: new StandstillDetector(options),
    slow,
    besides,
    still,
    recent,
    earlier: saved?.earlier ?? [],
    culprits: new Map(),
    resting: new Map(),
    judgedMs: -Infinity,
    session: 0,
    shown: { slow, besides, still, recent },
    baselineMs: saved?.baselineMs ?? null,
    wastedBefore: saved?.wastedGpuMs ?? 0,
    saved,
    ended: new Set(),
    seenMs: saved?.seenMs ?? 0,
    claims: new Map(),
    pastRuns: new Set(),
    suspicion: null,
    stillEpoch: 0,
    partialEvidence: null,
    countedBefore: { iteration: -Infinity, untilMs: 0 },
    shares: null,
    relieved: null,
    testedMs: saved?.testedMs ?? -Infinity,
    steps: [],
    isBusy: false,
  };
}

/** All machines have reported the end, and no process died. */
export function hasEnded({ run, saved, ended, standstills }: JobState): boolean {
  if (!run) return saved?.hasEnded ?? false;
  if (ended.size === 0 || standstills.hasLost) return false;
  return run.agents.every((agent) => ended.has(agent));
}

/** As of the last save, the worst first. */
export function openIncidents(state: JobState, nowMs: number): readonly Incident[] {
  const { still, slow, besides } = state.shown;
  return [
    still && withWasteNow(state, "still", still, nowMs),
    slow && withWasteNow(state, "slow", slow, nowMs),
    ...besides.map((one) => withWasteNow(state, "slow", one, nowMs)),
  ].filter((one) => one !== null);
}

/**
 * With what is lost by now, which is in no revision: one per iteration would drown the history. A job that stands still
 * wastes all its GPUs.
 */
export function withWasteNow(
  { slow, besides, run, saved }: JobState,
  which: "slow" | "still",
  incident: Incident,
  nowMs: number,
): Incident {
  if (which === "slow") {
    const now = slow?.id === incident.id ? slow : besides.find(({ id }) => id === incident.id);
    return now ? withWaste(incident, now.wastedGpuMs) : incident;
  }
  const gpus = run?.gpus ?? saved?.worldSize ?? 0;
  return withWaste(incident, Math.max(0, nowMs - incident.onsetMs) * gpus);
}

/** GPU-milliseconds lost so far, by all incidents of all runs. */
export function wastedGpuMs(state: JobState, nowMs: number): number {
  const { still, wastedBefore } = state;
  const open = [still && withWasteNow(state, "still", still, nowMs), ...openSlowdowns(state)];
  return open.reduce((sum, one) => sum + (one?.wastedGpuMs ?? 0), wastedBefore);
}

/** Open slowdowns, the newest first. */
export function openSlowdowns({ slow, besides }: Pick<JobState, "slow" | "besides">): Incident[] {
  return slow ? [slow, ...besides] : [...besides];
}

function runName({ run, saved }: JobState): string {
  return run?.run ?? saved?.run ?? "";
}

export function savedState(state: JobState): SavedJobState {
  const { run, saved, baselineMs, wastedBefore, slow, besides, still, recent, earlier } = state;
  return {
    run: runName(state),
    startedMs: run?.startedMs ?? saved?.startedMs ?? 0,
    worldSize: run?.worldSize ?? saved?.worldSize ?? 0,
    baselineMs,
    wastedGpuMs: wastedBefore,
    ...(Number.isFinite(state.testedMs) ? { testedMs: state.testedMs } : {}),
    slow,
    besides,
    still,
    recent,
    earlier,
    lastIteration: run ? run.lastIteration : (saved?.lastIteration ?? -1),
    seenMs: state.seenMs,
    hasEnded: hasEnded(state),
  };
}

/** What an agent reports of a run that is not, or not yet, the job's. */
export interface ClaimedRun {
  readonly machine: string;
  readonly report: JobReport;
}

export function ranksClaimed(reports: ReadonlyMap<string, ClaimedRun>): Rank[] {
  const ranks = [...reports.values()].flatMap(({ report }) => report.ranks.map(({ rank }) => rank));
  return [...new Set(ranks)].sort((a, b) => a - b);
}

/** What is missing to watch the whole job, a sentence each. */
export function missingParts(state: JobState, connected: ConnectedAgents, nowMs: number): string[] {
  const { run, claims, suspicion } = state;
  if (!run) return ["no agent has reported this job since the service started"];
  if (hasEnded(state)) return [];
  const missing: string[] = [];
  if (suspicion) missing.push(`suspected, and no incident yet: ${suspicion.incident.summary}`);
  const unheard = unheardOf(run, connected, nowMs);
  const silent = unheardWords(unheard);
  if (silent !== null) missing.push(silent);
  for (const [name, reports] of claims)
    missing.push(
      `${rankWords(ranksClaimed(reports))} also report a run ${name}: another job of this name is not watched while this one runs`,
    );
  const without = agentlessWords(unheard);
  if (without !== null) missing.push(without);
  return missing;
}

/** What must survive kill -9 of the service, a document a job; read back from a store that others may have written. */
export interface SavedJobState {
  readonly run: string;
  readonly startedMs: number;
  readonly worldSize: number;
  readonly baselineMs: number | null;
  readonly slow: Incident | null;
  /** Absent in documents of older services. */
  readonly besides?: readonly Incident[];
  readonly still: Incident | null;
  readonly recent: Incident | null;
  /** Those resolved before it: alerts about them may still be due. */
  readonly earlier: readonly Incident[];
  /** GPU-milliseconds lost by resolved incidents; absent in documents of older services. */
  readonly wastedGpuMs?: number;
  /** Absent where the ranks were never asked to test themselves. */
  readonly testedMs?: number;
  readonly lastIteration: number;
  /** When an agent last reported the job, and whether all agents have reported its end. */
  readonly seenMs: number;
  readonly hasEnded: boolean;
}

interface JobDocument extends SavedJobState {
  readonly schema: 1;
  readonly job: string;
  readonly savedMs: number;
  /** Revisions that the history has not confirmed yet. */
  readonly unsaved: readonly Incident[];
  /** Which alerts were sent (alerts/ledger.ts). */
  readonly alerts: unknown;
}

/** null where it is none of ours: written by another version, or damaged. */
export function documentOf(value: unknown): JobDocument | null {
  if (typeof value !== "object" || value === null) return null;
  const document = value as Partial<JobDocument>;
  const isOurs =
    document.schema === 1 &&
    typeof document.job === "string" &&
    typeof document.run === "string" &&
    Array.isArray(document.unsaved) &&
    (document.besides === undefined || Array.isArray(document.besides)) &&
    [document.slow, document.still, document.recent].every(
      (one) => one === null || typeof one?.id === "string",
    );
  return isOurs ? (document as JobDocument) : null;
}
