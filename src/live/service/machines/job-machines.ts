/** Which machines a job runs on and which stages they carry, from its agents; kept in the job's document for others. */
import { fieldsOf } from "../../../base/json.ts";
import { getOrInsert, groupBy } from "../../../base/group-by.ts";
import { ranges } from "../../../base/text.ts";
import { NO_ONE_JOB } from "../../../model/incident.ts";
import type { PlacedJob, PlacedMachine, PlacedRank } from "../../../pipeline/machines-by-job.ts";
import type { Coordinator } from "../../wire/transport.ts";
import type { JobRun } from "../job/job-run.ts";
import { rankLayout, type RankLayout } from "../job/rank-layout.ts";

/** As the document has it: machines by stage. */
export type SavedMachines = readonly {
  readonly stage: string | null;
  readonly machines: readonly string[];
}[];

/** Names beyond are left out of the document: a broker takes a megabyte. */
const MOST_SAVED = 20_000;

const known = new WeakMap<RankLayout, ReadonlyMap<string, PlacedMachine>>();

export function machinesOf(run: JobRun): ReadonlyMap<string, PlacedMachine> {
  const layout = rankLayout(run);
  const found = known.get(layout);
  if (found) return found;
  const ranks = new Map<string, PlacedRank[]>();
  const stages = new Map<string, Set<number>>();
  layout.rank.forEach((rank, k) => {
    const machine = layout.machine[k] ?? null;
    if (machine === null) return;
    const stage = layout.stage[k] ?? null;
    const one = { rank, gpu: layout.gpu[k] ?? null };
    getOrInsert(ranks, machine, () => []).push(one);
    if (stage !== null) getOrInsert(stages, machine, () => new Set()).add(stage);
  });
  const placed = new Map(
    [...ranks].map(([machine, list]) => {
      const seen = [...(stages.get(machine) ?? [])];
      const words = `${seen.length > 1 ? "stages" : "stage"} ${ranges(seen)}`;
      return [machine, { ranks: list, stage: seen.length === 0 ? null : words }];
    }),
  );
  known.set(layout, placed);
  return placed;
}

export function savedMachines(machines: ReadonlyMap<string, PlacedMachine>): SavedMachines {
  const byStage = groupBy([...machines].slice(0, MOST_SAVED), ([, { stage }]) => stage);
  return [...byStage].map(([stage, list]) => ({ stage, machines: list.map(([name]) => name) }));
}

function savedIn(document: unknown): { stage: string | null; names: string[] }[] {
  const { machines } = (document ?? {}) as { machines?: unknown };
  if (!Array.isArray(machines)) return [];
  return (machines as (Partial<SavedMachines[number]> | null)[]).map((one) => {
    const names = Array.isArray(one?.machines) ? (one.machines as unknown[]) : [];
    const stage = typeof one?.stage === "string" ? one.stage : null;
    return { stage, names: names.filter((name): name is string => typeof name === "string") };
  });
}

/** Names of the machines of a job's document, also of one that is over. */
export function machinesIn(document: unknown): string[] {
  return savedIn(document).flatMap(({ names }) => names);
}

/**
 * Of a document that another service, or an older one, may have written. null where it names no machines, and where no
 * agent has reported the job since `heardMs`: another job may run there by now.
 */
export function placedJobOf(document: unknown, heardMs: number): PlacedJob | null {
  const { job, run, startedMs, seenMs, hasEnded } = fieldsOf(document) ?? {};
  if (typeof job !== "string" || typeof run !== "string" || hasEnded === true) return null;
  if (typeof seenMs !== "number" || seenMs < heardMs) return null;
  const placed = new Map<string, PlacedMachine>();
  for (const { stage, names } of savedIn(document))
    for (const name of names) placed.set(name, { stage, ranks: [] });
  const since = typeof startedMs === "number" && Number.isFinite(startedMs) ? startedMs : 0;
  return placed.size === 0 ? null : { job, run, startedMs: since, machines: placed };
}

/**
 * Every job of the site, also those that other services watch; null where there is none at all. Jobs that no agent has
 * reported since `heardMs` are left out.
 */
export async function placedJobs(
  own: ReadonlyMap<string, { placed(heardMs: number): PlacedJob | null }>,
  coordinator: Pick<Coordinator, "list" | "read">,
  heardMs: number,
): Promise<readonly PlacedJob[] | null> {
  const names = (await coordinator.list()).filter((job) => job !== NO_ONE_JOB);
  if (names.length === 0 && own.size === 0) return null;
  const placed = [...own.values()].map((leased) => leased.placed(heardMs));
  for (const job of names)
    if (!own.has(job)) placed.push(placedJobOf(await coordinator.read(job), heardMs));
  return placed.filter((one) => one !== null);
}
