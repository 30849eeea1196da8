/** What the page knows, as the service tells it: jobs, open incidents, new iterations, whether the line is up. */
import type { Handling, Incident, JobView, Mute, SwitchState } from "./api.ts";
import { observable } from "./observable.ts";
import type { NewIterations } from "./take-events.ts";

/** connecting: never was up. lost: was up; what is shown is old. refused: a token is needed, or another one. */
export type Line =
  | { readonly state: "connecting" | "up"; readonly sinceMs: number }
  | { readonly state: "lost" | "refused"; readonly sinceMs: number; readonly why: string };

export const line = observable<Line>({ state: "connecting", sinceMs: Date.now() });
/** null before the first snapshot. */
export const jobs = observable<readonly JobView[] | null>(null);
/** Open ones, and those that ended while the page was open; by id, the newest revision. */
export const incidents = observable<ReadonlyMap<string, Incident>>(new Map());
/** Iterations as they end, to whoever draws them; those of a new run count from 0 again. */
export const newIterations = observable<NewIterations | null>(null);
/** Whether the job can be broken on purpose (web/demo). */
export const isDemo = observable(false);
/** Whether the service runs actions; null before it said so, and of an older service. */
export const actionsSwitch = observable<SwitchState | null>(null);
/** What people did about incidents, by incident; those that nobody touched are not in it. */
export const handlings = observable<ReadonlyMap<string, Handling>>(new Map());
/** What nobody is alerted of; null before the service said so, and of an older service. */
export const mutes = observable<readonly Mute[] | null>(null);
/** Counts snapshots: after each, what was fetched before may have gaps. */
export const snapshots = observable(0);
/** Ranks that are brushed or pointed at, of one job: whatever shows ranks marks them. */
export const brushed = observable<{
  readonly job: string;
  readonly ranks: ReadonlySet<number>;
} | null>(null);
