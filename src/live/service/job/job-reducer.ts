/**
 * One job as a state machine: what agents report and what searches find comes in as events, what has to be done goes out
 * as decisions. No I/O, no clock, no timer: the time comes with the event, and leased-job.ts carries the decisions out.
 */
import type { Incident } from "../../../model/incident.ts";
import type { JobReport } from "../../wire/messages.ts";
import { enqueue, enqueueDecision, type Turn } from "../incident/incident-book.ts";
import { suspected, withWaste } from "../incident/incident-lifecycle.ts";
import { advance, onActions, onCollected, onSaved } from "../incident/incident-steps.ts";
import type { EventOf, JobDecision, JobEvent } from "./job-events.ts";
import type { JobIteration } from "./job-iterations.ts";
import { JobRun } from "./job-run.ts";
import { hasEnded, type JobState, openSlowdowns, ranksClaimed } from "./job-state.ts";
import { unheardOf } from "./partial-view.ts";
import { onRegression, onRegressionOver } from "../regression/regression-steps.ts";
import {
  endRested,
  forgetUneven,
  lostIn,
  onBack,
  onJudged,
  onSlower,
} from "../slowdown/culprit-steps.ts";
import { onExplained } from "../slowdown/explain-steps.ts";
import { PaceWatch } from "../slowdown/pace-watch.ts";
import { looksLikePause } from "../standstill/standstill-proof.ts";
import { StandstillDetector } from "../standstill/standstill-detector.ts";

/** How slow it was is not remembered; only when it is as before matters. */
const RESUMED_RATIO = 1.25;
const MOST_CLAIMS = 16;
/** Ranks of a run report at least so often while it runs. */
const QUIET_MS = 5000;
/** Clocks of machines are apart by less. */
const CLOCKS_MS = 30_000;
/** Agents that are heard and give no evidence are asked again after so long, each time twice as long. */
const ASK_AGAIN_MS = 15_000;

export function reduceJob(
  before: JobState,
  event: JobEvent,
): { readonly state: JobState; readonly decisions: readonly JobDecision[] } {
  const turn: Turn = { state: { ...before }, nowMs: event.nowMs, decisions: [] };
  (HANDLERS[event.type] as (turn: Turn, event: JobEvent) => void)(turn, event);
  advance(turn);
  return turn;
}

const HANDLERS: { readonly [T in JobEvent["type"]]: (turn: Turn, event: EventOf<T>) => void } = {
  job: onJob,
  points: onPoints,
  beat: onBeat,
  event: onEvent,
  "agent-gone": ({ state }, { agent }) => {
    state.standstills.forget(agent);
    state.run?.disconnected(agent);
  },
  late: onLate,
  tick: onTick,
  actions: onActions,
  saved: onSaved,
  judged: onJudged,
  explained: onExplained,
  collected: onCollected,
  validated: ({ state }, { id, validated, nowMs }) =>
    enqueue(state, { step: "validated", id, validated, atMs: nowMs }),
  regression: onRegression,
  "regression-over": onRegressionOver,
  profiled: ({ state, nowMs: atMs }, { id, diagnosis }) =>
    enqueue(state, { step: "confirm", which: "slow", id, diagnosis, atMs }),
  rebalanced: onRebalanced,
  failed: ({ state }) => void (state.isBusy = false),
};

function onJob(turn: Turn, { agent, machine, report, connected }: EventOf<"job">): void {
  const { state, nowMs } = turn;
  if (state.pastRuns.has(report.run)) return;
  state.seenMs = nowMs;
  const { run } = state;
  if (!run) beginRun(turn, report);
  else if (report.run !== run.run && !run.mayBe(agent, report)) {
    // Machines notice a restart one after the other; reports of the old run are ignored from then on. Most ranks must
    // report the new run where it looks old (a clock that is behind), and while ranks of the old one still report: that is
    // another job of the same name, or a false report.
    const isQuiet = !(nowMs - state.standstills.movedMs <= QUIET_MS);
    const isLater = report.startedMs >= run.startedMs && isQuiet;
    if (!isClaimed(turn, machine, agent, report, run) && !isLater) return;
    const claimed = state.claims.get(report.run);
    const agentRuns = [...run.ranks.values()].map(({ agentRun }) => agentRun);
    state.pastRuns = new Set([...state.pastRuns, run.run, ...agentRuns]);
    endRun(turn, report.run);
    beginRun(turn, report);
    for (const [other, one] of claimed ?? []) {
      if (other === agent) continue;
      state.run!.heard(other, nowMs);
      state.run!.take(other, one.machine, one.report, connected);
    }
  }
  state.run!.heard(agent, nowMs);
  const ranks = state.run!.take(agent, machine, report, connected);
  if (ranks.length > 0) turn.decisions.push({ do: "refuse", ranks, rows: 0 });
}

function isClaimed(
  { state }: Turn,
  machine: string,
  agent: string,
  report: JobReport,
  run: JobRun,
): boolean {
  const { claims } = state;
  const { run: name } = report;
  const claimed = new Map(claims.get(name)).set(agent, { machine, report });
  if (claims.size < MOST_CLAIMS || claims.has(name))
    state.claims = new Map(claims).set(name, claimed);
  return ranksClaimed(claimed).filter((rank) => run.ranks.has(rank)).length > run.ranks.size / 2;
}

function beginRun({ state }: Turn, report: JobReport): void {
  const run = new JobRun(report, state.jobFile);
  state.run = run;
  state.countedBefore = { iteration: -Infinity, untilMs: state.countedBefore.untilMs };
  state.suspicion = null;
  state.pace = new PaceWatch();
  state.culprits = new Map();
  state.resting = new Map();
  state.judgedMs = -Infinity;
  state.relieved = null;
  state.standstills = new StandstillDetector(state.options);
  const { saved } = state;
  state.saved = null;
  if (!saved) return;
  // The service was restarted in the middle of this run, or another run has begun meanwhile.
  if (report.run !== saved.run && report.startedMs > saved.startedMs) {
    endRun({ state }, report.run);
    return;
  }
  const { slow, still, baselineMs } = saved;
  state.countedBefore = { iteration: saved.lastIteration, untilMs: saved.seenMs };
  if (still) {
    state.standstills.resume();
    const { id, ranks, verdict } = still;
    const kind = still.kind === "crash" ? "crash" : "hang";
    const says = verdict === null ? still.summary : "no iteration completes";
    // The service was killed before there was a verdict, or there is one that names nobody: agents may be heard that were not.
    if (verdict === null || verdict.suspects.length === 0)
      enqueueDecision(state, { do: "collect", run, id, kind, ranks, says });
  }
  // The baseline is known: a slowdown that began while no service ran is one.
  if (!slow && baselineMs !== null && baselineMs > 0) run.iterations.calm(baselineMs);
  if (slow && slow.kind !== "regression" && baselineMs !== null)
    state.pace.resume({
      isPaced: true,
      slowFrom: slow.fromIteration ?? 0,
      fromMs: slow.onsetMs,
      beforeMs: baselineMs,
      afterMs: baselineMs * RESUMED_RATIO,
    });
}

function endRun({ state }: Pick<Turn, "state">, next: string): void {
  const how = { ending: "restarted", says: `restarted as run ${next}` } as const;
  enqueue(state, { step: "resolve", which: "slow", ...how });
  enqueue(state, { step: "resolve", which: "still", ...how });
  state.ended = new Set();
  state.claims = new Map();
}

function onPoints(turn: Turn, { agent, report }: EventOf<"points">): void {
  const { state, nowMs } = turn;
  const { run } = state;
  // An agent that has not introduced itself to this service yet: it will.
  if (!run) return;
  run.heard(agent, nowMs);
  const { epoch } = run;
  const { own, added, foreign } = run.addPoints(agent, report, nowMs);
  if (foreign > 0) turn.decisions.push({ do: "refuse", ranks: [], rows: foreign });
  if (own === 0) return;
  state.seenMs = nowMs;
  if (state.ended.has(agent))
    state.ended = new Set([...state.ended].filter((one) => one !== agent));
  // What is told again because an agent was cut off, or to a service that was restarted, is no movement.
  const isNews = added > 0 && hasUncounted(state, report);
  if (isNews) state.standstills.moved(nowMs);
  // A standstill that is certain is over when iterations complete, not when old ones come late while its evidence is collected.
  if (isNews && state.suspicion?.isCertain !== true) state.suspicion = null;
  if (run.epoch !== epoch) {
    state.pace.rebase();
    state.relieved?.pace.rebase();
    state.countedBefore = { iteration: -Infinity, untilMs: state.countedBefore.untilMs };
  }
}

function onBeat({ state, nowMs }: Turn, { agent, beat }: EventOf<"beat">): void {
  const { run } = state;
  if (!run?.isOf(agent, beat.run)) return;
  state.seenMs = nowMs;
  run.heard(agent, nowMs);
  const gone = new Set(beat.gone);
  const stopped = new Set(beat.stopped);
  for (const [rank, one] of run.ranksOf(agent))
    one.state = gone.has(rank) ? "gone" : stopped.has(rank) ? "stopped" : "running";
  state.standstills.heard(agent, beat, nowMs);
}

function onEvent({ state, nowMs }: Turn, { agent, report }: EventOf<"event">): void {
  const { run, standstills } = state;
  const { what, says } = report;
  if (!run?.isOf(agent, report.run)) return;
  const ranks = report.ranks.filter((rank) => run.ranks.get(rank)?.agent === agent);
  if (ranks.length === 0 && what !== "ended") return;
  if (what === "gone") standstills.lost(ranks, says, nowMs);
  else if (what === "ended") state.ended = new Set([...state.ended, agent]);
  else if (what === "log-failure") standstills.failed(ranks, says);
  for (const rank of ranks) {
    const one = run.ranks.get(rank)!;
    if (what === "gone" || what === "stopped") one.state = what;
    else if (what === "continued") one.state = "running";
  }
}

function onRebalanced({ state }: Turn, { shares }: EventOf<"rebalanced">): void {
  const { relieved, run } = state;
  const wasUneven = state.shares !== null;
  state.shares = shares;
  if (!run || !wasUneven) return;
  state.relieved = null;
  if (relieved) state.pace = relieved.pace;
  run.iterations.calm(state.baselineMs);
  forgetUneven(state);
  // Whoever is still slow with these shares is named again.
  for (const { id } of openSlowdowns(state)) {
    const says = "passed; micro-batches are shared out otherwise";
    if (relieved && !relieved.incidents.has(id))
      enqueue(state, { step: "resolve-one", id, ending: "passed", says });
  }
}

/** From now on the pace with these shares is the usual one: what is slow already stays as it is until they are equal again. */
function relieve(state: Turn["state"], run: JobRun): void {
  const incidents = new Set(openSlowdowns(state).map(({ id }) => id));
  state.relieved = { pace: state.pace, incidents };
  state.pace = new PaceWatch();
  run.iterations.calm(null);
}

/** The service was too busy to read reports for so long: nobody was silent in that time. */
function onLate({ state }: Turn, { ms }: EventOf<"late">): void {
  state.standstills.shift(ms);
  const { heardMs } = state.run ?? {};
  for (const [agent, atMs] of heardMs ?? []) heardMs!.set(agent, atMs + ms);
}

function onTick(turn: Turn): void {
  const { state, nowMs } = turn;
  const { run, job } = state;
  if (!run) return;
  countIterations(turn, run);
  endRested(turn);
  if (hasEnded(state) && state.slow)
    enqueue(state, { step: "resolve", which: "slow", ending: "ended", says: "the job has ended" });
  if (state.still) {
    collectAgain(turn);
    return;
  }
  const seen = state.standstills.look(nowMs, run.iterations.pace, hasEnded(state));
  if (!seen) return;
  const { kind, ranks, says, sinceMs, isSuspicion } = seen;
  const last = Math.max(
    run.lastIteration,
    state.countedBefore.iteration,
    Math.floor(state.standstills.lastIteration(nowMs)),
  );
  const fromIteration = last >= 0 ? last + 1 : null;
  const about = { job, run: run.run, kind, summary: says, onsetMs: sinceMs, nowMs, fromIteration };
  const still = { ...suspected(about), ranks };
  const collect = { do: "collect", run, id: still.id, kind, ranks, says } as const;
  const before = state.suspicion?.incident.id === still.id ? state.suspicion : null;
  if (isSuspicion) {
    if (before?.isCollecting) return;
    const { incident, diagnosis } = before ?? { incident: still, diagnosis: null };
    state.suspicion = { incident, diagnosis, isCollecting: true, isCertain: false };
    enqueueDecision(state, collect);
    return;
  }
  if (before?.isCollecting) {
    state.suspicion = { ...before, isCertain: true };
    return;
  }
  state.still = before ? { ...still, openedMs: before.incident.openedMs } : still;
  state.suspicion = null;
  state.stillEpoch = run.epoch;
  enqueue(state, { step: "save", incident: state.still });
  // Nothing has moved since it was suspected: the evidence from then is the evidence.
  const diagnosis = before?.diagnosis;
  if (diagnosis && diagnosis.verdict.suspects.length > 0)
    enqueue(state, { step: "confirm", which: "still", diagnosis, atMs: nowMs });
  else enqueueDecision(state, collect);
}

/**
 * Whoever is at fault was perhaps among the ranks that were not heard: half of those that fell silent are by now, or of those
 * that never had an agent.
 */
function collectAgain({ state, nowMs }: Turn): void {
  const { still, partialEvidence: partial } = state;
  if (!partial || partial.evidence.id !== still?.id) return;
  const { evidence, askedMs } = partial;
  const { run, times = 0 } = evidence;
  if (times > 0 && nowMs - askedMs < ASK_AGAIN_MS * 2 ** (times - 1)) return;
  // One that did not answer may have been heard right before.
  const since = { has: (agent: string) => (run.heardMs.get(agent) ?? -Infinity) > askedMs };
  const now = unheardOf(run, since, nowMs);
  const are = (which: "ranks" | "agentless"): boolean => {
    const before = partial.unheard[which].length;
    return before > 0 && now[which].length <= before / 2;
  };
  if (!are("ranks") && !are("agentless")) return;
  state.partialEvidence = null;
  enqueueDecision(state, { ...evidence, times: times + 1 });
}

function countIterations(turn: Turn, run: JobRun): void {
  const { state, decisions, nowMs } = turn;
  if (state.shares !== null && !state.relieved && state.slow) relieve(state, run);
  const iterations = run.count(nowMs);
  if (iterations.length === 0) return;
  // What nobody is at fault for is perhaps a pause that comes again: that is learnt.
  if (state.still && !mayBePause(state.still)) run.iterations.disrupted(iterations);
  for (const one of iterations) {
    // Agents report again what the previous service has seen and closed: nothing new.
    const isNew = state.slow !== null || isUncounted(state, one);
    const change = state.pace.push(one);
    if (change === "slower" && isNew) onSlower(turn);
    if (change === "back") onBack(turn);
    const isCounted = isUncounted(state, one);
    const isHealthy = !state.pace.slowdown && !state.slow && state.culprits.size === 0;
    if (isHealthy && one.levelMs > 0 && isCounted) state.baselineMs = one.levelMs;
    // While the job stands still, that is what costs.
    if (state.slow && !state.still && isCounted)
      state.slow = withWaste(
        state.slow,
        state.slow.wastedGpuMs + lostIn(state, one.durationMs) * run.gpus,
      );
  }
  // After a restart agents report again iterations from before. What some ranks ended before the others stopped is no sign either.
  const { fromIteration, openedMs } = state.still ?? { fromIteration: null, openedMs: Infinity };
  const isNew = run.epoch !== state.stillEpoch;
  const after = iterations.filter(
    ({ iteration, endMs }) =>
      isNew ||
      (iteration >= (fromIteration ?? -Infinity) && !(run.points.heardOf(iteration) <= openedMs)) ||
      endMs > openedMs + CLOCKS_MS,
  ).length;
  const goesOn = state.standstills.goesOn(after);
  if (goesOn) state.suspicion = null;
  if (goesOn && state.still) {
    const says = `iterations complete again, the last is ${run.lastIteration}`;
    enqueue(state, { step: "resolve", which: "still", ending: "passed", says });
  }
  decisions.push({ do: "record-iterations", run, iterations });
}

function mayBePause({ kind, ranks, verdict }: Incident): boolean {
  if (kind !== "hang") return false;
  return verdict ? looksLikePause(verdict) : ranks.length === 0;
}

/** Not counted by the previous service: a higher number, or later, where the job went back to a checkpoint. */
function isUncounted(
  { countedBefore }: JobState,
  { iteration, endMs }: Pick<JobIteration, "iteration" | "endMs">,
): boolean {
  return iteration > countedBefore.iteration || endMs > countedBefore.untilMs + CLOCKS_MS;
}

function hasUncounted(state: JobState, { iteration, endMs }: EventOf<"points">["report"]): boolean {
  return iteration.some((number, i) => isUncounted(state, { iteration: number, endMs: endMs[i]! }));
}
