/** How many machines a job may lose to us in a day: a method that errs must not drain a cluster. */
import { count, cutText, harmless } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import type { ActionsConfig } from "./types.ts";

export const DAY_MS = 86_400_000;
export const MOST_MACHINES_PER_DAY = 2;
/** Words of actions that take a machine from its job. */
export const TAKE_OUT: readonly string[] = [
  "cordon-node",
  "exclude-node",
  "replace-machine",
  "restart-without",
];
/** How outcomes begin after which nobody knows what the hook has done. */
export const UNKNOWN = "outcome unknown: ";

/** One sentence where one more machine would be too many; null where it is not. */
export function limitWords(
  machine: string,
  taken: readonly string[],
  job: string,
  { mostMachinesPerDay = MOST_MACHINES_PER_DAY }: ActionsConfig,
): string | null {
  const others = [...new Set(taken)].filter((name) => name !== machine);
  // A machine that was taken out once may be taken out in another way as well.
  if (taken.includes(machine) || others.length < mostMachinesPerDay) return null;
  const names = cutText(harmless(others.slice(0, 4).join(", ")), 200);
  return others.length === 0
    ? "no machine may be taken out: mostMachinesPerDay is 0"
    : `${count(others.length, "machine")} of job ${harmless(job)} (${names}) within 24 hours is the most that may be taken out: mostMachinesPerDay is ${mostMachinesPerDay}`;
}

/** Machines that were, or may have been, taken out since a moment, by the records of a job's incidents. */
export function machinesTaken(incidents: readonly Incident[], sinceMs: number): string[] {
  const machines = new Set<string>();
  for (const { actions } of incidents) {
    for (const { do: word, state, outcome, changedMs, data } of actions) {
      const { machine } = data as { machine?: unknown };
      if (changedMs < sinceMs || !TAKE_OUT.includes(word) || typeof machine !== "string") continue;
      const mayBe = state === "failed" && outcome.startsWith(UNKNOWN);
      if (state === "done" || state === "running" || mayBe) machines.add(machine);
    }
  }
  return [...machines];
}
