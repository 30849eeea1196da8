/** Events into what the page knows, many at a time: a flood is one change of each value. */
import type { LiveEvent } from "../../src/live/service/view.ts";
import type { Handling, Incident, Iterations, JobView, Mute, SwitchState } from "./api.ts";

export type FeedEvent =
  | LiveEvent
  | {
      readonly type: "snapshot";
      readonly jobs: readonly JobView[];
      readonly incidents: readonly Incident[];
      readonly isDemo: boolean;
      /** Absent in older services. */
      readonly actions?: SwitchState;
      readonly handlings?: readonly Handling[];
      readonly mutes?: readonly Mute[];
    };

export interface Known {
  readonly jobs: readonly JobView[] | null;
  readonly incidents: ReadonlyMap<string, Incident>;
}

export interface NewIterations {
  readonly job: string;
  readonly run: string;
  readonly rows: Iterations;
}

export interface Taken extends Known {
  readonly snapshots: number;
  /** null: as before. */
  readonly isDemo: boolean | null;
  readonly actions: SwitchState | null;
  readonly iterations: readonly NewIterations[];
  /** Those that changed. */
  readonly handlings: readonly Handling[];
  readonly mutes: readonly Mute[] | null;
}

/** Ended incidents that are remembered. */
export const MOST_RESOLVED = 200;

/** Values that nothing changed are the same objects as before. */
export function takeEvents(known: Known, events: readonly FeedEvent[]): Taken {
  let jobs = known.jobs === null ? null : new Map(known.jobs.map((job) => [job.job, job]));
  let incidents = new Map(known.incidents);
  const iterations: NewIterations[] = [];
  let snapshots = 0;
  let isDemo: boolean | null = null;
  let actions: SwitchState | null = null;
  const handlings: Handling[] = [];
  let mutes: readonly Mute[] | null = null;
  let areJobsNew = false;
  let areIncidentsNew = false;

  const take = (incident: Incident): void => {
    const had = incidents.get(incident.id);
    if (had && had.revision > incident.revision) return;
    // The same revision again: what is lost is counted on without a new one.
    incidents.set(incident.id, incident);
    areIncidentsNew = true;
  };

  for (const event of events) {
    switch (event.type) {
      case "snapshot":
        snapshots++;
        isDemo = event.isDemo;
        actions = event.actions ?? actions;
        handlings.push(...(event.handlings ?? []));
        mutes = event.mutes ?? mutes;
        jobs = new Map(event.jobs.map((job) => [job.job, job]));
        areJobsNew = areIncidentsNew = true;
        // An open one that is not in the snapshot has ended while nobody listened.
        incidents = new Map([...incidents].filter(([, { state }]) => state === "resolved"));
        event.incidents.forEach(take);
        break;
      case "job":
        jobs ??= new Map();
        jobs.set(event.job.job, event.job);
        areJobsNew = true;
        break;
      case "incident":
        take(event.incident);
        break;
      case "iterations":
        addIterations(iterations, event);
        break;
      case "actions":
        actions = event;
        break;
      case "handling":
        handlings.push(event.handling);
        break;
      case "mutes":
        mutes = event.mutes;
        break;
      case "agent":
      case "trouble":
        break;
      default:
        // Of a newer service.
        break;
    }
  }
  return {
    jobs: areJobsNew ? [...jobs!.values()] : known.jobs,
    incidents: areIncidentsNew ? bounded(incidents) : known.incidents,
    snapshots,
    isDemo,
    actions,
    iterations,
    handlings,
    mutes,
  };
}

/** Rows of the same run that follow each other become one. */
function addIterations(all: NewIterations[], { job, run, rows }: NewIterations): void {
  const at = all.findIndex((one) => one.job === job && one.run === run);
  if (at < 0) {
    all.push({ job, run, rows });
    return;
  }
  const had = all[at]!.rows;
  all[at] = {
    job,
    run,
    rows: {
      iteration: [...had.iteration, ...rows.iteration],
      endMs: [...had.endMs, ...rows.endMs],
      durationMs: [...had.durationMs, ...rows.durationMs],
    },
  };
}

function bounded(incidents: Map<string, Incident>): ReadonlyMap<string, Incident> {
  const ended = [...incidents.values()].filter(({ state }) => state === "resolved");
  if (ended.length <= MOST_RESOLVED) return incidents;
  ended.sort((a, b) => a.changedMs - b.changedMs);
  for (const { id } of ended.slice(0, ended.length - MOST_RESOLVED)) incidents.delete(id);
  return incidents;
}
