/** The word of the judge on a culprit is explained, and becomes a verdict of an incident (docs/incidents.md, rules 1, 2 and 6). */
import { factOf } from "../../../model/facts.ts";
import type { Incident } from "../../../model/incident.ts";
import type { LiveCulprit } from "../../../model/live-judgement.ts";
import type { Verdict } from "../../../model/verdict.ts";
import { confirm, enqueue, type Turn } from "../incident/incident-book.ts";
import {
  accusesSame,
  beganWith,
  isAbout,
  isOfNetwork,
  isSameLinkBetween,
} from "../incident/incident-lifecycle.ts";
import type { EventOf } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { type NamedCulprit, openSlowdowns } from "../job/job-state.ts";
import { unheardOf, withUnheard } from "../job/partial-view.ts";
import { accuseAnother, type Found, validateLater } from "./accuse.ts";
import { isEnding, PACE, resolve, SURER } from "./culprit-steps.ts";
import { slowdownOf } from "./culprit-slowdown.ts";
import { LEAST_RISE } from "./pace-watch.ts";
import { restedLong } from "./resting.ts";

/** Whose sends are slow is told once wires show the device, or after so many looks at them. */
const LOOKS_UNTIL_TOLD = 2;

type State = Turn["state"];

/** Its turn has come: it may be over by now. */
export function explain(turn: Turn, key: string): void {
  const { state, nowMs, decisions } = turn;
  const { run } = state;
  const named = state.culprits.get(key);
  if (!run || !named) return;
  const others = openSlowdowns(state).filter(({ id }) => id !== named.incident);
  const usualMs = others.length > 0 ? state.baselineMs : null;
  const { culprit, incident } = named;
  const paced = state.pace.slowdown;
  if (!culprit && !paced) return;
  const stretch = culprit && sinceFirst(state, culprit, incident);
  const slowdown = stretch ? slowdownOf(stretch, run.iterations, usualMs) : paced!;
  decisions.push({
    do: "explain",
    run,
    key,
    culprit,
    slowdown,
    isAgain: incident !== null,
    accused: new Set(others.flatMap(({ ranks }) => ranks)),
    usualMs: usualMs ?? slowdown.beforeMs,
    unheard: unheardOf(run, null, nowMs),
  });
  state.isBusy = true;
}

/** Of one that has rested: all of its stretches. */
function sinceFirst(
  state: State,
  culprit: LiveCulprit,
  incident: string | null,
): Pick<LiveCulprit, "sinceMs" | "shape"> {
  const known = openSlowdowns(state).find(({ id }) => id === incident);
  if (!known || !state.resting.has(known.id)) return culprit;
  return { sinceMs: Math.min(known.onsetMs, culprit.sinceMs), shape: "now-and-then" };
}

export function onExplained(turn: Turn, { explain: asked, diagnosis }: EventOf<"explained">): void {
  const { state } = turn;
  state.isBusy = false;
  const { key, run, slowdown, unheard, culprit } = asked;
  const named = state.culprits.get(key);
  // It was over before anybody was told (rule 6).
  if (!named || run !== state.run) return;
  const verdict = withUnheard(diagnosis.verdict, unheard);
  const open = openSlowdowns(state);
  const names = verdict.suspects.length > 0;
  // That nobody leads, or that sends take longer, is told only where it costs something.
  const isSlower = slowdown.afterMs > LEAST_RISE * slowdown.beforeMs;
  if (culprit?.type === "wire" && slowdown.isPaced && !isSlower && open.length === 0) return;
  const mayBeNobody = isSlower && (culprit === null || culprit.type === "all");
  if (!names && (!mayBeNobody || open.some((one) => one.verdict !== null))) return;
  // The code is slower since then: whoever is slow runs it.
  const isOfCode = (one: Incident): boolean =>
    one.kind === "regression" && beganWith({ onsetMs: slowdown.fromMs }, one.onsetMs);
  if (open.some(isOfCode)) return;
  const { isOnWire = false } = diagnosis;
  if (isHalfKnown(named, isOnWire)) return;
  const found = { run, slowdown, diagnosis: { ...diagnosis, verdict } };
  const known = incidentOf(state, key, verdict, run);
  if (!known) for (const one of restedLong(turn, true)) resolve(turn, one, "fixed");
  const id = known ? sayMore(turn, known, found) : accuseAnother(turn, found);
  state.culprits = new Map(state.culprits).set(key, { ...named, incident: id, isOnWire });
  // Two ends of one link were accused by themselves at first.
  if (named.incident !== null && named.incident !== id)
    enqueue(state, { step: "withdraw", id: named.incident });
}

/** Whose sends are slow is one end of a link, or sends to a slow NIC: the next look may show which. */
function isHalfKnown({ culprit, explained, incident }: NamedCulprit, isOnWire: boolean): boolean {
  const isSender = culprit?.type === "wire" && culprit.ranks.length === 1;
  return isSender && !isOnWire && incident === null && explained!.times < LOOKS_UNTIL_TOLD;
}

/** The open incident that is about the culprit; none that is about another whom the judge names, unless it is the same wire. */
function incidentOf(
  state: State,
  key: string,
  verdict: Verdict,
  run: JobRun,
): Incident | undefined {
  const others = [...state.culprits].filter(([other]) => other !== key && other !== PACE);
  const taken = new Set(others.map(([, { incident }]) => incident));
  const own = state.culprits.get(key)!.incident;
  const open = openSlowdowns(state).filter((one) => !isEnding(state, one));
  const free = open.filter(({ id }) => !taken.has(id));
  const [suspect] = verdict.suspects;
  const isWire = suspect !== undefined && isOfNetwork(suspect);
  return (
    (isWire ? open.find((one) => accusesSame(one.verdict, verdict)) : undefined) ??
    free.find(({ id }) => id === own) ??
    free.find((one) => accusesSame(one.verdict, verdict)) ??
    free.find((one) => isAbout(one, verdict, true)) ??
    free.find((one) => isSameLinkBetween(run.ranks, one.verdict, verdict))
  );
}

function sayMore(turn: Turn, known: Incident, { run, slowdown, diagnosis }: Found): string {
  const { state, nowMs: atMs } = turn;
  const { id } = known;
  // What tests found out, the judge does not take back.
  if (known.validation?.isNamed && isAbout(known, diagnosis.verdict, false)) return id;
  if (known.verdict && addsNothing(known.verdict, diagnosis.verdict)) return id;
  validateLater(state, run, diagnosis, slowdown);
  confirm(turn, { step: "confirm", which: "slow", id, diagnosis, slowdown, atMs });
  return id;
}

/** A second verdict that names the same suspects, no surer, and knows no more of the job's pace. */
function addsNothing(first: Verdict, second: Verdict): boolean {
  const paceOf = ({ findings }: Verdict): string => {
    const pace = findings.map((one) => factOf(one, "slow-down")).find((one) => one !== null);
    return pace ? (pace.intermittent ? "now and then" : "lasting") : "unknown";
  };
  const keyOf = ({ suspects }: Verdict): string =>
    suspects.map(({ type, cause, ranks }) => `${type} ${cause} ${ranks.join()}`).join(";");
  const pace = paceOf(second);
  if (pace !== "unknown" && pace !== paceOf(first)) return false;
  return keyOf(first) === keyOf(second) && second.confidence < first.confidence + SURER;
}
