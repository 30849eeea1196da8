/** Somebody whom no open incident accuses is accused: in a new incident, or in one that comes back (docs/incidents.md, rules 2 and 7). */
import { intermittentWords } from "../../../base/text.ts";
import type { Incident } from "../../../model/incident.ts";
import {
  accusedBeside,
  clearOthers,
  enqueue,
  publish,
  recentSlowdowns,
  store,
  type Turn,
} from "../incident/incident-book.ts";
import {
  accusesSame,
  isSameLinkBetween,
  relapsed,
  suspected,
  withSlowdown,
  withWaste,
  withoutVictims,
} from "../incident/incident-lifecycle.ts";
import type { Diagnosis, JobStep } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { openSlowdowns } from "../job/job-state.ts";
import { unheardOf, unheardWords } from "../job/partial-view.ts";
import { isSlowOne } from "./culprit-slowdown.ts";
import type { Slowdown } from "./pace-watch.ts";

/** Slowdowns of a job that are open at once. */
const MOST_OPEN = 8;

/** What was found out about who makes a job slow. */
export interface Found {
  readonly run: JobRun;
  readonly slowdown: Slowdown;
  readonly diagnosis: Diagnosis;
}

/** The verdict accuses somebody whom no open incident accuses: the incident that does from now on; null where there are too many. */
export function accuseAnother(turn: Turn, { run, slowdown, diagnosis }: Found): string | null {
  const { state, nowMs: atMs } = turn;
  const { verdict } = diagnosis;
  const open = openSlowdowns(state);
  if (open.length >= MOST_OPEN) return null;
  validateLater(state, run, diagnosis, slowdown);
  const old = recentSlowdowns(turn).find(
    (one) =>
      accusesSame(one.verdict, verdict) || isSameLinkBetween(run.ranks, one.verdict, verdict),
  );
  // What is lost while several are slow counts once: so far it was counted for those before.
  const lost = open.length > 0 ? 0 : lostSince(turn, run, slowdown);
  const first = old ?? suspectedSlowdown(turn, run, slowdown);
  const { id } = first;
  if (open.length > 0) {
    state.besides = open;
    state.slow = null;
  }
  if (!old) {
    const confirm: JobStep = { step: "confirm", which: "slow", id, diagnosis, slowdown, atMs };
    store(turn, "slow", withWaste(first, lost), confirm);
    return id;
  }
  // What it lost the first time is part of it again.
  state.wastedBefore = Math.max(0, state.wastedBefore - old.wastedGpuMs);
  const rest = [state.recent, ...state.earlier].filter((one) => one !== null && one.id !== old.id);
  [state.recent = null, ...state.earlier] = rest as Incident[];
  const clean = withoutVictims(verdict, accusedBeside(state, id));
  const again = relapsed(old, clean, slowdown.slowFrom, atMs);
  clearOthers(state, again);
  const record = withSlowdown(withWaste(again, old.wastedGpuMs + lost), slowdown);
  store(turn, "slow", record, publish(again, { ...diagnosis, verdict: clean }));
  return id;
}

export function validateLater(
  state: Turn["state"],
  run: JobRun,
  { tests }: Diagnosis,
  { beforeMs, afterMs, intermittent }: Slowdown,
): void {
  // Most iterations take as long as ever where it is slow now and then.
  const iterationMs = intermittent ? beforeMs : afterMs;
  if (tests) enqueue(state, { step: "validate", run, tests, iterationMs });
}

/** GPU-milliseconds lost by iterations that were slow before it was noticed, and after what was slow before it was over. */
function lostSince(turn: Turn, run: JobRun, { fromMs, beforeMs, intermittent }: Slowdown): number {
  const ends = recentSlowdowns(turn).map(({ resolvedMs }) => resolvedMs ?? -Infinity);
  const isLost = (ms: number): boolean => !intermittent || isSlowOne(ms, beforeMs);
  return run.iterations.lostMs(beforeMs, Math.max(fromMs, ...ends), isLost) * run.gpus;
}

function slowdownWords(slowdown: Slowdown): string {
  const { isPaced, slowFrom, beforeMs, afterMs, intermittent } = slowdown;
  if (!isPaced) return "ranks wait for somebody";
  const ratio = afterMs / beforeMs;
  return intermittent
    ? intermittentWords(intermittent.slow, intermittent.of, ratio)
    : `iterations take ${ratio.toFixed(2)} times as long since iteration ${slowFrom}`;
}

function suspectedSlowdown({ state, nowMs }: Turn, run: JobRun, slowdown: Slowdown): Incident {
  const { isPaced, slowFrom, fromMs } = slowdown;
  const says = [
    slowdownWords(slowdown),
    "searching for the root cause",
    unheardWords(unheardOf(run, null, nowMs)),
  ];
  const record = suspected({
    job: state.job,
    run: run.run,
    kind: "fail-slow",
    summary: says.filter((one) => one !== null).join("; "),
    onsetMs: fromMs,
    nowMs,
    fromIteration: isPaced ? slowFrom : null,
  });
  // Two culprits of one stretch begin with the same iteration.
  const known = [
    ...openSlowdowns(state),
    ...state.earlier,
    ...(state.recent ? [state.recent] : []),
  ];
  const ids = new Set(known.map(({ id }) => id));
  let [id, number] = [record.id, 1];
  while (ids.has(id)) id = `${record.id}-${++number}`;
  return withSlowdown({ ...record, id }, slowdown);
}
