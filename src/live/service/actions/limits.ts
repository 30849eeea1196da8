/** What may be done at most: a method that errs must not drain a cluster. Each gives one sentence, or null where all is well. */
import { count, cutText, harmless } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import type { ActionsConfig, NamedSpare } from "./types.ts";

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
const MOST_MACHINES_PER_DAY = 2;
const LEAST_MACHINES = 0.5;
const MOST_PER_HOUR = 60;
const MOST_PER_HOUR_OF_JOB = 12;
/** Words of actions that take a machine from its job. */
export const TAKE_OUT: readonly string[] = [
  "cordon-node",
  "exclude-node",
  "replace-machine",
  "restart-without",
];
/** How outcomes begin after which nobody knows what was done. */
export const UNKNOWN = "outcome unknown: ";

/** Where one more machine of the job would be too many. */
export function limitWords(
  machine: string,
  taken: readonly string[],
  job: string,
  { mostMachinesPerDay = MOST_MACHINES_PER_DAY }: ActionsConfig,
): string | null {
  const others = [...new Set(taken)].filter((name) => name !== machine);
  // A machine that was taken out once may be taken out in another way as well.
  if (taken.includes(machine) || others.length < mostMachinesPerDay) return null;
  return others.length === 0
    ? "no machine may be taken out: mostMachinesPerDay is 0"
    : `${count(others.length, "machine")} of job ${harmless(job)} (${someOf(others)}) within 24 hours is the most that may be taken out: mostMachinesPerDay is ${mostMachinesPerDay}`;
}

/**
 * Where the job would keep too few machines. `machines`: those that it runs on; null where nobody knows, and then only a
 * person may decide.
 */
export function quorumWords(
  machine: string,
  replacement: string | null,
  taken: readonly string[],
  machines: readonly string[] | null,
  byPerson: boolean,
  { leastMachines = LEAST_MACHINES }: ActionsConfig,
): string | null {
  if (machines === null || machines.length === 0)
    return byPerson
      ? null
      : "how many machines the job has is not known, so a person must approve it";
  const gone = new Set([...taken, machine]);
  const left = machines.filter((name) => !gone.has(name)).length + (replacement === null ? 0 : 1);
  const least = leastMachines < 1 ? Math.ceil(leastMachines * machines.length) : leastMachines;
  return left >= least
    ? null
    : `the job would keep ${left} of its ${count(machines.length, "machine")}, and must keep ${least}: leastMachines is ${leastMachines}`;
}

/** Where the service, without a person, would take a second machine from a job within an hour. */
export function atOnceWords(machine: string, takenLately: readonly string[]): string | null {
  const others = takenLately.filter((name) => name !== machine);
  return others.length === 0
    ? null
    : `${someOf(others)} of the same job was taken out less than an hour ago, so a person must approve this one`;
}

/** Where too much was run within the hour. Ids of incidents begin with the job's name and a dot; names have no dots. */
export function hourWords(
  runs: readonly { readonly incident: string }[],
  job: string,
  {
    mostActionsPerHour = MOST_PER_HOUR,
    mostActionsPerHourOfJob = MOST_PER_HOUR_OF_JOB,
  }: ActionsConfig,
): string | null {
  if (runs.length >= mostActionsPerHour)
    return `${count(runs.length, "action")} within an hour is the most: mostActionsPerHour is ${mostActionsPerHour}`;
  const own = runs.filter(({ incident }) => incident.startsWith(`${job}.`)).length;
  return own < mostActionsPerHourOfJob
    ? null
    : `${count(own, "action")} of job ${harmless(job)} within an hour is the most: mostActionsPerHourOfJob is ${mostActionsPerHourOfJob}`;
}

/** Machines that were, or may have been, taken out since a moment, by the records of a job's incidents. */
export function machinesTaken(incidents: readonly Incident[], sinceMs: number): string[] {
  const machines = new Set<string>();
  for (const { actions } of incidents) {
    for (const { do: word, state, outcome, changedMs, data, canUndo } of actions) {
      const { machine } = data as { machine?: unknown };
      if (changedMs < sinceMs || !TAKE_OUT.includes(word) || typeof machine !== "string") continue;
      const mayBe = state === "failed" && (outcome.startsWith(UNKNOWN) || canUndo === true);
      if (["done", "running", "undoing"].includes(state) || mayBe) machines.add(machine);
    }
  }
  return [...machines];
}

/** Spares that an action has, or an open incident proposes; an action that was dismissed or undone gives its spare back. */
export function sparesNamed(incidents: readonly Incident[]): NamedSpare[] {
  return incidents.flatMap(({ id, state: ofIncident, actions }) =>
    actions.flatMap(({ id: action, state, data }) => {
      const { replacement } = data as { replacement?: unknown };
      if (typeof replacement !== "string" || state === "dismissed" || state === "undone") return [];
      const wasRun = state === "done" || state === "running" || state === "undoing";
      if (!wasRun && ofIncident === "resolved") return [];
      return [{ spare: replacement, by: `${id} ${action}` }];
    }),
  );
}

function someOf(names: readonly string[]): string {
  return cutText(harmless(names.slice(0, 4).join(", ")), 200);
}
