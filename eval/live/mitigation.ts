/**
 * The closed loop through the service: `node --import tsx eval/live/mitigation.ts [--seeds N] [--random N] [--first S] [--log]`. A
 * simulated job reports through agents, asks the service for its micro-batches before each iteration, and gives its ranks
 * other places when the service's webhook says so. The service runs with `approval: automatic`. Greyhound's twelve events
 * (figure 20), and random traces of faults beside the best that could have been done in hindsight: the same job with every
 * fault's best remedy from its first iteration on.
 */
import { parseArgs } from "node:util";
import { pick, randomInt, seeded } from "../../src/base/random.ts";
import { PlayedJob } from "../../src/live/fleet/played-job.ts";
import type { IterationReport } from "../../src/live/service/microbatches/allocation.ts";
import { allocateMicroBatches } from "../../src/mitigate/microbatches.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import type { IterationTimes } from "../../src/simulate/cluster/times.ts";
import { rehearse, type Rehearsal } from "../../test/support/live-rehearsal.ts";
import { SMALL, twelveEvents } from "../mitigate/at-scale.ts";
import { profileOf } from "../mitigate/profile.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "3" },
    random: { type: "string", default: "20" },
    first: { type: "string", default: "1" },
    log: { type: "boolean", default: false },
  },
});

/** What the job stands still for new places, and for a restart. */
const SWAP_S = 50;
const RESTART_S = 1800;
/** The paper's 37.4 iterations a minute, in as many iterations. */
const EVERY_MS = 1600;
const FIGURE_20 = { ...SMALL, iterations: 1500 };

interface Played {
  readonly seconds: number;
  readonly shares: number;
  readonly swaps: number;
  readonly restarts: number;
  /** Slowdowns that were confirmed. */
  readonly confirmed: number;
}

const fromOf = (text: string): number => Number(/from=(\d+)/.exec(text)![1]);

/** Puts on the board what begins with the iteration. */
function begin(pending: string[], { board }: PlayedJob, iteration: number): void {
  for (let i = pending.length - 1; i >= 0; i--)
    if (fromOf(pending[i]!) <= iteration)
      board.add(pending.splice(i, 1)[0]!.replace(/:from=\d+/, ""));
}

/** The job by itself: seconds to its last iteration, each with the shares that somebody says who knows all faults. */
function playAlone(
  spec: ClusterSpec,
  faults: readonly string[],
  iterations: number,
  sharesOf: ((iteration: number) => readonly number[]) | null,
): number {
  const mostMicroBatches = 4 * spec.microBatches;
  const job = new PlayedJob({ spec, everyMs: EVERY_MS, startMs: 0, mostMicroBatches });
  const pending = [...faults];
  let [nowMs, endMs, shares] = [0, 0, ""];
  for (let i = 1; i <= iterations; i++) {
    begin(pending, job, i);
    const microBatches = sharesOf?.(i);
    if (microBatches && String(microBatches) !== shares) job.board.order({ microBatches });
    shares = String(microBatches);
    let times = job.next(nowMs);
    for (; times === null; times = job.next(nowMs)) nowMs += EVERY_MS / 20;
    endMs = job.wallMs(times.endNs);
  }
  return endMs / 1000;
}

/** Plays the job to its last iteration under a service that may act. */
async function play(
  spec: ClusterSpec,
  faults: readonly string[],
  iterations: number,
): Promise<Played> {
  let [shares, swaps, restarts] = [0, 0, 0];
  let rehearsal: Rehearsal | null = null;
  const take = async (_: unknown, init?: { readonly body?: unknown }): Promise<Response> => {
    const order = JSON.parse(String(init?.body)) as {
      do: string;
      placement: { gpuOf: number[] } | null;
    };
    const { board, scale } = rehearsal!.fleet.played;
    if (order.do === "swap-nodes" && order.placement) {
      swaps++;
      const seats = Int32Array.from(order.placement.gpuOf);
      board.order({ seats, pauseNs: (SWAP_S * 1e9) / scale });
    } else {
      restarts++;
      for (const fault of board.faults) if (fault.toMs === null) board.remove(fault.id);
      board.order({ pauseNs: (RESTART_S * 1e9) / scale });
    }
    return new Response("{}", { status: 200 });
  };
  const webhook = {
    do: ["swap-nodes", "restart-without"],
    url: "http://job.example/orders",
    headers: {},
    canUndo: false,
    timeoutSeconds: 10,
  };
  rehearsal = await rehearse(
    spec,
    {
      relapseMs: 0,
      fetch: take,
      actions: {
        dryRun: false,
        approval: "automatic",
        leastConfidence: 0.5,
        mostActionsPerHour: 1000,
        mostActionsPerHourOfJob: 1000,
        hooks: [],
        drivers: { webhook },
      },
      ...(values.log ? { log: (line: string) => console.log(`  ${line}`) } : {}),
    },
    undefined,
    { everyMs: EVERY_MS, mostMicroBatches: 4 * spec.microBatches },
  );
  const { fleet, service } = rehearsal;
  const { played, held } = fleet;
  const { dp: replicas, pp, gpus, microBatches } = spec;
  const bubble = pp - 1;
  const shape = { groups: replicas, total: replicas * microBatches, multipleOf: 1, bubble };
  const pending = [...faults];
  let given = "";
  const underWay: { readonly endMs: number; readonly report: IterationReport }[] = [];
  const beganMs = rehearsal.nowMs();
  /** What the job's adapter measures: the time of its micro-batches, with the pipeline's filling and draining. */
  const measured = (times: IterationTimes): IterationReport => {
    const { passMs } = profileOf(played.simulation, times);
    const counts = [...times.shares.microBatches];
    const seconds = counts.map(() => 0);
    for (let rank = 0; rank < gpus; rank++) {
      const replica = replicaIndex(spec, rank);
      const wholeMs = passMs[rank]! * played.scale * (counts[replica]! + bubble);
      seconds[replica] = Math.max(seconds[replica]!, wholeMs / 1000);
    }
    return { iteration: times.iteration, counts, seconds };
  };
  let begun = 0;
  const tick = (): boolean => {
    const { last } = played;
    if (last && last.iteration > begun) {
      begun = last.iteration;
      underWay.push({ endMs: played.wallMs(last.endNs), report: measured(last) });
      begin(pending, played, begun + 1);
    }
    while (underWay.length > 0 && underWay[0]!.endMs <= rehearsal.nowMs())
      service.microBatches.report("sim", "r", underWay.shift()!.report, shape);
    const { counts } = service.microBatches.plan("sim", "r", begun + 1, shape);
    if (String(counts) !== given) {
      if (given !== "") shares++;
      given = String(counts);
      played.board.order({ microBatches: counts });
    }
    return held.last >= iterations;
  };
  await rehearsal.run(20 * iterations, tick);
  const slow = rehearsal.told.filter(({ kind, verdict }) => kind === "fail-slow" && verdict);
  const confirmed = new Set(slow.map(({ id }) => id)).size;
  return { seconds: (rehearsal.nowMs() - beganMs) / 1000, shares, swaps, restarts, confirmed };
}

/** Ranks count tensor-parallel first, then replicas, then stages. */
function replicaIndex({ tp, dp }: ClusterSpec, rank: number): number {
  return Math.floor(rank / tp) % dp;
}

/** The shares of one who knows all faults of GPUs. */
function bestShares(
  spec: ClusterSpec,
  faults: readonly string[],
): (iteration: number) => readonly number[] {
  const number = (text: string, name: string): number =>
    Number(new RegExp(`${name}=([\\d.]+)`).exec(text)![1]);
  const slow = faults
    .filter((text) => text.startsWith("gpu-slow"))
    .map((text) => ({
      replica: replicaIndex(spec, number(text, "rank")),
      from: number(text, "from"),
      to: number(text, "to"),
      severity: number(text, "severity"),
    }));
  return (iteration) => {
    const times = Array.from({ length: spec.dp }, () => 1);
    for (const { replica, from, to, severity } of slow)
      if (iteration >= from && iteration <= to)
        times[replica] = Math.max(times[replica]!, severity);
    const total = spec.dp * spec.microBatches;
    const fixedMs = times.map((time) => (spec.pp - 1) * time);
    return allocateMicroBatches({ timesMs: times, fixedMs, total }).allocation;
  };
}

const ofMinute = (iterations: number, seconds: number): string =>
  ((60 * iterations) / seconds).toFixed(1);
const specOf = (shape: Partial<ClusterSpec>, seed: number): ClusterSpec =>
  completeSpec({ ...shape, iterations: Number.MAX_SAFE_INTEGER, seed });

const gains: number[] = [];
for (let k = 0; k < Number(values.seeds); k++) {
  const seed = Number(values.first) + k;
  const { shape, iterations } = FIGURE_20;
  const faults = twelveEvents(FIGURE_20, seed);
  const spec = specOf(shape, seed);
  const best = bestShares(spec, faults);
  const without = playAlone(spec, faults, iterations, null);
  const onlyShares = playAlone(spec, faults, iterations, best);
  const gpusOnly = faults.filter((text) => text.startsWith("gpu-slow"));
  // Each congestion is gone after one swap, which is made in its first iteration.
  const swaps = faults.length - gpusOnly.length;
  const bound = playAlone(spec, gpusOnly, iterations, best) + SWAP_S * swaps;
  const treated = await play(spec, faults, iterations);
  gains.push(without / treated.seconds);
  console.log(
    `figure 20, 64 GPUs, seed ${seed}: ${ofMinute(iterations, without)} → ${ofMinute(iterations, treated.seconds)} iterations a minute, ${gains.at(-1)!.toFixed(2)} times; one who knows all: ${(without / onlyShares).toFixed(2)} with shares alone, ${(without / bound).toFixed(2)} with a swap for each congestion; ${treated.shares} new shares, ${treated.swaps} swaps, ${treated.restarts} restarts, ${treated.confirmed} slowdowns confirmed`,
  );
}

/** One to three faults, at any time, of any length. */
function randomFaults(spec: ClusterSpec, iterations: number, seed: number): string[] {
  const random = seeded(1000 + seed);
  return Array.from({ length: 1 + randomInt(random, 3) }, () => {
    const from = 40 + randomInt(random, iterations / 2);
    const to = from + 20 + randomInt(random, iterations - from - 20);
    const severity = pick(random, [1.3, 1.6, 2.2, 3]);
    return `gpu-slow:rank=${randomInt(random, spec.gpus)}:from=${from}:to=${to}:severity=${severity}`;
  });
}

const RANDOM_ITERATIONS = 300;
const RANDOM_SHAPE = {
  gpus: 32,
  tp: 4,
  pp: 1,
  dp: 8,
  microBatches: 8,
  gpusPerMachine: 4,
  layersPerStage: 2,
};
let worst = 0;
let played = 0;
for (let k = 0; k < Number(values.random); k++) {
  const seed = Number(values.first) + k;
  const spec = specOf(RANDOM_SHAPE, seed);
  const faults = randomFaults(spec, RANDOM_ITERATIONS, seed);
  const healthy = playAlone(spec, [], RANDOM_ITERATIONS, null);
  const lostAlone = playAlone(spec, faults, RANDOM_ITERATIONS, null) - healthy;
  const least = playAlone(spec, faults, RANDOM_ITERATIONS, bestShares(spec, faults)) - healthy;
  const treated = await play(spec, faults, RANDOM_ITERATIONS);
  const lost = treated.seconds - healthy;
  const times = lost / Math.max(least, 1);
  worst = Math.max(worst, times);
  played++;
  console.log(
    `random ${seed}: ${faults.length} faults, lost ${lostAlone.toFixed(0)} → ${lost.toFixed(0)} s, best in hindsight ${least.toFixed(0)} s (${times.toFixed(2)} times), ${treated.shares} new shares, ${treated.confirmed} slowdowns confirmed`,
  );
}

if (gains.length > 0) {
  const sorted = gains.toSorted((a, b) => a - b);
  console.log(
    `\nfigure 20's events: ${sorted.map((gain) => gain.toFixed(2)).join(", ")} times (aim 1.6)`,
  );
}
if (played > 0)
  console.log(
    `random traces: ${played}, worst ${worst.toFixed(2)} times the best in hindsight (aim 2)`,
  );
