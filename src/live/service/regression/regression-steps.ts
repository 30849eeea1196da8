/** A regression that was found, as an incident of the job: a slowdown that began with it is the same incident. */
import type { Incident } from "../../../model/incident.ts";
import { beganWith, culpritWords, suspected } from "../incident/incident-lifecycle.ts";
import { enqueue, type Turn } from "../incident/incident-book.ts";
import type { EventOf } from "../job/job-events.ts";
import { openSlowdowns } from "../job/job-state.ts";

export function onRegression(turn: Turn, { verdict, sinceMs }: EventOf<"regression">): void {
  const { state, nowMs } = turn;
  const { run, job } = state;
  if (!run) return;
  // Whom the search for slow devices and links has named is the better answer to a network that is slower.
  const isNetwork = verdict.suspects[0]?.cause === "network-slow";
  if (isNetwork && openSlowdowns(state).some((one) => one.verdict?.suspects.length)) return;
  const [same, ...others] = openSlowdowns(state)
    .filter((one) => beganWith(one, sinceMs))
    .reverse();
  const incident: Incident =
    same ??
    suspected({
      job,
      run: run.run,
      kind: "regression",
      summary: "iterations are longer than healthy ones",
      onsetMs: sinceMs,
      nowMs,
      fromIteration: null,
    });
  if (!same) {
    state.besides = openSlowdowns(state);
    state.slow = incident;
    enqueue(state, { step: "save", incident });
  }
  // Whom the judge accused of it runs the code: that it names nobody any longer does not end it.
  state.culprits = new Map(
    [...state.culprits].map(([key, one]) => [
      key,
      one.incident === incident.id ? { ...one, incident: null } : one,
    ]),
  );
  enqueue(state, {
    step: "confirm",
    which: "slow",
    id: incident.id,
    diagnosis: { verdict },
    atMs: nowMs,
  });
  // Not more often than tests of GPUs: both cost the job time.
  const allowed = state.options.validation;
  if (allowed && !isNetwork && nowMs - state.testedMs >= allowed.everyMs) {
    state.testedMs = nowMs;
    turn.decisions.push({ do: "profile", run, id: incident.id, verdict });
  }
  for (const { id } of others) {
    const says = `withdrawn; the code became slower (incident ${incident.id}): ${culpritWords(verdict.suspects[0]!)}`;
    enqueue(state, { step: "resolve-one", id, ending: "withdrawn", says });
  }
}

const OVER = {
  "as-before": "iterations are as long as before",
  "other-work":
    "the job does other work since then, so that its iterations cannot be compared with earlier ones",
} as const;

export function onRegressionOver({ state }: Turn, { why }: EventOf<"regression-over">): void {
  for (const { id, kind } of openSlowdowns(state)) {
    const says = OVER[why];
    if (kind === "regression") enqueue(state, { step: "resolve-one", id, ending: "passed", says });
  }
}
