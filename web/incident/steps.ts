/** What became of an incident, revision by revision, in words. */
import { actionHead } from "../../src/report/action-words.ts";
import type { Incident } from "../live/api.ts";

export interface Step {
  readonly atMs: number;
  readonly says: string;
  readonly tone: "wait" | "bad" | "good" | "open";
}

const MOST_STEPS = 60;

export function stepsOf(revisions: readonly Incident[]): readonly Step[] {
  const steps: Step[] = [];
  const [first] = revisions;
  if (first) steps.push({ atMs: first.onsetMs, says: "it probably began", tone: "open" });
  let before: Incident | null = null;
  for (const incident of revisions) {
    steps.push(...changes(before, incident));
    before = incident;
  }
  // Clocks to the millisecond and parts of it: what came later must not look earlier.
  steps.forEach((step, i) => {
    if (i > 0) steps[i] = { ...step, atMs: Math.max(step.atMs, steps[i - 1]!.atMs) };
  });
  // The beginning and the end matter most where there are many.
  if (steps.length <= MOST_STEPS) return steps;
  const left = steps.length - MOST_STEPS;
  const middle: Step = { atMs: steps[9]!.atMs, says: `${left} more changes`, tone: "open" };
  return [...steps.slice(0, 9), middle, ...steps.slice(steps.length - (MOST_STEPS - 10))];
}

function changes(before: Incident | null, incident: Incident): readonly Step[] {
  const atMs = before === null ? incident.openedMs : incident.changedMs;
  const steps: Step[] = [];
  if (before?.state !== incident.state) steps.push({ atMs, ...stateWords(incident) });
  else if (before.summary !== incident.summary)
    steps.push({ atMs, says: "the verdict changed", tone: "open" });
  for (const action of incident.actions) {
    const had = before?.actions.find(({ id }) => id === action.id);
    if (had?.state === action.state || (had === undefined && action.state === "proposed")) continue;
    const what = actionHead(action).slice(0, 120);
    steps.push({
      atMs: action.changedMs,
      says: `${what}: ${action.state}`,
      tone: action.state === "failed" ? "bad" : action.state === "done" ? "good" : "open",
    });
  }
  return steps;
}

function stateWords({ state, summary }: Incident): Pick<Step, "says" | "tone"> {
  switch (state) {
    case "suspected":
      return { says: "suspected: something is wrong", tone: "wait" };
    case "confirmed":
      return { says: "confirmed: it lasts, and there is a verdict", tone: "bad" };
    case "relapsed":
      return { says: "it came back", tone: "bad" };
    case "resolved":
      // The record says how: "over: iterations take as long as before".
      return { says: `resolved, ${summary.slice(0, 300)}`, tone: "good" };
  }
}
