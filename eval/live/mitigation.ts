/**
 * The closed loop through the service: `node --import tsx eval/live/mitigation.ts [--seeds N] [--random N] [--first S]`. A
 * simulated job reports through agents, asks the service for its micro-batches before each iteration, and gives its ranks
 * other places when the service's webhook says so. The service runs with `approval: automatic`. Greyhound's twelve events
 * (figure 20), and random traces of faults beside the best that could have been done in hindsight: the same job with every
 * fault's best remedy from its first iteration on.
 */
import { parseArgs } from "node:util";
import { pick, randomInt, seeded } from "../../src/base/random.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { rehearse, type Rehearsal } from "../../test/support/live-rehearsal.ts";
import { SMALL, twelveEvents } from "../mitigate/at-scale.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "3" },
    random: { type: "string", default: "20" },
    first: { type: "string", default: "1" },
  },
});

/** What the job stands still for new places. */
const SWAP_S = 50;
const RESTART_S = 1800;

interface Played {
  readonly seconds: number;
  readonly iterations: number;
  readonly shares: number;
  readonly swaps: number;
  readonly restarts: number;
}

/** Plays the job to its last iteration. */
async function play(
  spec: Partial<ClusterSpec>,
  faults: readonly string[],
  iterations: number,
  isMitigating: boolean,
): Promise<Played> {
  let [shares, swaps, restarts] = [0, 0, 0];
  let rehearsal: Rehearsal | null = null;
  const take = async (_: unknown, init?: { readonly body?: unknown }): Promise<Response> => {
    const order = JSON.parse(String(init?.body)) as {
      do: string;
      placement: { gpuOf: number[] } | null;
      machines: string[];
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
      actions: isMitigating
        ? {
            dryRun: false,
            approval: "automatic",
            leastConfidence: 0.5,
            mostActionsPerHour: 1000,
            mostActionsPerHourOfJob: 1000,
            hooks: [],
            drivers: { webhook },
          }
        : { dryRun: true, approval: "required", hooks: [] },
    },
    undefined,
    2 * (spec.microBatches ?? 8),
  );
  const { fleet } = rehearsal;
  const { simulation, board } = fleet.played;
  const { dp, gpus, microBatches } = simulation.spec;
  const replicas = dp;
  const shape = { groups: replicas, total: replicas * microBatches, multipleOf: 1, bubble: 0 };
  const pending = faults.map((text) => ({ text, from: Number(/from=(\d+)/.exec(text)![1]) }));
  let counts: readonly number[] = Array.from({ length: replicas }, () => microBatches);
  const countsOf = new Map<number, readonly number[]>();
  let reported = 0;
  const beganMs = rehearsal.nowMs();
  const tick = (): boolean => {
    const { service } = rehearsal;
    for (let i = pending.length - 1; i >= 0; i--)
      if (pending[i]!.from <= fleet.held.last + 2)
        board.add(pending.splice(i, 1)[0]!.text.replace(/:from=\d+/, ""));
    for (let i = Math.max(reported + 1, fleet.held.first); i <= fleet.held.last; i++) {
      reported = i;
      const row = fleet.held.of(i)!;
      const seconds = Array.from({ length: replicas }, () => 0);
      for (let rank = 0; rank < gpus; rank++) {
        const own =
          row.durationMs[rank]! - row.collectiveMs[rank]! - row.sendMs[rank]! - row.recvMs[rank]!;
        const replica = replicaIndex(simulation.spec, rank);
        seconds[replica] = Math.max(seconds[replica]!, own / 1000);
      }
      const taken = countsOf.get(i) ?? counts;
      service.microBatches.report("sim", "r", { iteration: i, counts: taken, seconds }, shape);
    }
    const next = fleet.held.last + 2;
    const plan = service.microBatches.plan("sim", "r", next, shape).counts;
    if (plan.some((count, k) => count !== counts[k])) {
      shares++;
      counts = plan;
      board.order({ microBatches: plan });
    }
    countsOf.set(next, counts);
    return fleet.held.last >= iterations;
  };
  await rehearsal.run(20 * iterations, tick);
  return { seconds: (rehearsal.nowMs() - beganMs) / 1000, iterations, shares, swaps, restarts };
}

/** Ranks count tensor-parallel first, then replicas, then stages. */
function replicaIndex({ tp, dp }: ClusterSpec, rank: number): number {
  return Math.floor(rank / tp) % dp;
}

const rate = ({ iterations, seconds }: Played): number => (60 * iterations) / seconds;

const gains: number[] = [];
for (let k = 0; k < Number(values.seeds); k++) {
  const seed = Number(values.first) + k;
  const faults = twelveEvents(SMALL, seed);
  const spec = { ...SMALL.shape, seed };
  const without = await play(spec, faults, SMALL.iterations, false);
  const treated = await play(spec, faults, SMALL.iterations, true);
  gains.push(rate(treated) / rate(without));
  console.log(
    `figure 20, 64 GPUs, seed ${seed}: ${rate(without).toFixed(1)} → ${rate(treated).toFixed(1)} of 60 iterations a minute, ${gains.at(-1)!.toFixed(2)} times; ${treated.shares} new shares, ${treated.swaps} swaps, ${treated.restarts} restarts`,
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
let worst = 0;
let played = 0;
for (let k = 0; k < Number(values.random); k++) {
  const seed = Number(values.first) + k;
  const shape = {
    gpus: 32,
    tp: 4,
    pp: 1,
    dp: 8,
    microBatches: 8,
    gpusPerMachine: 4,
    layersPerStage: 2,
  };
  const faults = randomFaults(shape as unknown as ClusterSpec, RANDOM_ITERATIONS, seed);
  const spec = { ...shape, seed };
  const healthy = await play(spec, [], RANDOM_ITERATIONS, false);
  const without = await play(spec, faults, RANDOM_ITERATIONS, false);
  const treated = await play(spec, faults, RANDOM_ITERATIONS, true);
  const lostBefore = without.seconds - healthy.seconds;
  const lost = treated.seconds - healthy.seconds;
  const best = bestLoss(faults, RANDOM_ITERATIONS);
  const times = lost / Math.max(best, 1);
  worst = Math.max(worst, times);
  played++;
  console.log(
    `random ${seed}: ${faults.length} faults, lost ${lostBefore.toFixed(0)} → ${lost.toFixed(0)} s, best in hindsight ${best.toFixed(0)} s (${times.toFixed(2)} times), ${treated.shares} new shares`,
  );
}

/** Every iteration with the shares that suit its faults, from the first on; micro-batches are whole. */
function bestLoss(faults: readonly string[], iterations: number): number {
  let lost = 0;
  const all = faults.map((text) => {
    const number = (name: string): number => Number(new RegExp(`${name}=([\\d.]+)`).exec(text)![1]);
    return {
      replica: Math.floor(number("rank") / 4) % 8,
      from: number("from"),
      to: number("to"),
      severity: number("severity"),
    };
  });
  for (let i = 1; i <= iterations; i++) {
    const factor = Array.from({ length: 8 }, () => 1);
    for (const { replica, from, to, severity } of all)
      if (i >= from && i <= to) factor[replica] = Math.max(factor[replica]!, severity);
    // The least makespan of 64 micro-batches over eight replicas, an eighth of a second each.
    const counts = Array.from({ length: 8 }, () => 0);
    for (let m = 0; m < 64; m++) {
      let to = 0;
      for (let r = 1; r < 8; r++)
        if ((counts[r]! + 1) * factor[r]! < (counts[to]! + 1) * factor[to]!) to = r;
      counts[to]!++;
    }
    const makespan = Math.max(...counts.map((count, r) => count * factor[r]!)) / 8;
    lost += Math.max(0, makespan - 1);
  }
  return lost;
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
