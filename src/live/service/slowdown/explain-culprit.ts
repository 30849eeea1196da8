/** Makes a verdict of what the judge says of a culprit; of the network, agents are asked once for what was on the wire. */
import type { SlowIterations } from "../../../methods/slow/on-wire.ts";
import { diagnoseCulprit } from "../../../pipeline/live-slowdown.ts";
import type { Diagnosis, ExplainDecision } from "../job/job-events.ts";
import type { JobRun } from "../job/job-run.ts";
import { isSlowOne } from "./culprit-slowdown.ts";
import type { DiagnosisEnv } from "./diagnose-incident.ts";
import { fetchWireTimes } from "./fetch-wires.ts";
import type { Slowdown } from "./pace-watch.ts";

/** Iterations of each kind of which agents are asked what was on the wire, the newest. */
const MOST_ON_WIRE = 12;

export async function explainCulprit(
  { run, culprit, slowdown, accused, usualMs }: ExplainDecision,
  env: DiagnosisEnv,
): Promise<Diagnosis & { readonly bytes: number }> {
  const live = run.known();
  const reachable = [...run.ranks.values()]
    .filter(({ agent, state }) => env.connected.has(agent) && state !== "gone")
    .map(({ report }) => report.rank)
    .sort((a, b) => a - b);
  const before = env.fetchedBytes();
  const series = run.iterations.series();
  const last = run.lastIteration;
  const found = await diagnoseCulprit({
    live,
    reachable,
    culprit,
    stretch: { ...slowdown, last, source: series.source },
    accused,
    usualMs,
    series,
    incidents: await env.incidents(run.job),
    async wires() {
      const slow = slowIterations(run, slowdown);
      const numbers = numbersOnWire(run, slowdown, slow.isSlow);
      return { times: await fetchWireTimes(run, live, Float64Array.from(numbers), env), slow };
    },
  });
  env.log(
    `job ${run.job}: slow since iteration ${slowdown.slowFrom}, ${wordsOf(culprit)}: ${found.verdict.summary}`,
  );
  return { ...found, bytes: env.fetchedBytes() - before };
}

function wordsOf(culprit: ExplainDecision["culprit"]): string {
  if (!culprit) return "nothing is judged";
  const { type, ranks, cause, probability } = culprit;
  return `${type} ${ranks.slice(0, 8).join()} ${cause ?? "gpu or cpu"} ${probability.toFixed(3)}`;
}

function slowIterations({ points }: JobRun, slowdown: Slowdown): SlowIterations {
  const { slowFrom, beforeMs, intermittent } = slowdown;
  const durationOf = (number: number): number => points.whole(number)?.durationMs ?? NaN;
  return {
    durationOf,
    isSlow: (number) =>
      number >= slowFrom && (!intermittent || isSlowOne(durationOf(number), beforeMs)),
    isLasting: intermittent === undefined,
  };
}

/** The newest healthy and slow ones, those right before the slow ones, which may make them late, and the last ones of all. */
function numbersOnWire(
  { points, iterations }: JobRun,
  { slowFrom }: Slowdown,
  isSlow: (iteration: number) => boolean,
): number[] {
  const held = points.iterations.filter((number) => !iterations.isPause(number));
  const late = held.filter(isSlow).slice(-MOST_ON_WIRE);
  const usual = held.filter((number) => number < slowFrom).slice(-MOST_ON_WIRE);
  const last = held.slice(-MOST_ON_WIRE);
  const all = [...usual, ...last, ...late, ...late.map((number) => number - 1)];
  return [...new Set(all)].filter((number) => number >= 0).sort((a, b) => a - b);
}
