/**
 * Greyhound's probing jobs (§3.2, §3.3; table 1), simulated: 392 on one machine (4 GPUs, 2TP 2PP), of which 4
 * have CPU contention and 2 a degraded GPU, and 107 on four machines (8 GPUs, 2TP 4DP), of which 42 have
 * network congestion and 1 CPU contention. Lengths are a fifth of theirs (2,000 iterations); fail-slows last
 * as large a share of the job as theirs (means 12 % and 8 %, exponential by our assumption, at least 20
 * iterations). How much a fail-slow slows the job is drawn between 1.12 and 2.2, noise apart;
 * where noise leaves less than 10 %, Greyhound's own threshold, the job is drawn again; one of the 43 slow jobs on
 * four machines degrades in steps below 10 %, the case that Greyhound misses.
 */
import { seeded } from "../../src/base/random.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { DEFAULT_SPEC, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";

export interface ProbeJob {
  readonly times: readonly number[];
  readonly isSlow: boolean;
  /** Index of the first slow iteration, -1 for none. */
  readonly onset: number;
  /** How much longer iterations take in the fail-slow than in the same job without it. */
  readonly effect: number;
  readonly what: string;
}

export interface ProbePlan {
  readonly name: string;
  readonly spec: Partial<ClusterSpec>;
  /** Cause and how many jobs have it. */
  readonly slow: readonly (readonly [fault: string, jobs: number])[];
  readonly healthy: number;
  /** Mean share of the job that a fail-slow lasts. */
  readonly share: number;
}

const ITERATIONS = 2000;

export const COMPUTATION: ProbePlan = {
  name: "computation",
  spec: { gpus: 4, tp: 2, pp: 2, dp: 1, microBatches: 4, layersPerStage: 2, gpusPerMachine: 4 },
  slow: [
    ["cpu-stall:rank=2", 4],
    ["gpu-slow:rank=1", 2],
  ],
  healthy: 386,
  share: 0.12,
};

export const COMMUNICATION: ProbePlan = {
  name: "communication",
  spec: { gpus: 8, tp: 2, pp: 1, dp: 4, microBatches: 2, layersPerStage: 4, gpusPerMachine: 2 },
  slow: [
    ["network-slow:machine=node001", 41],
    ["ladder:network-slow:machine=node002", 1],
    ["cpu-stall:rank=2", 1],
  ],
  healthy: 64,
  share: 0.08,
};

export function* probeJobs(plan: ProbePlan, seed: number, scale = 1): Generator<ProbeJob> {
  let number = 0;
  const iterations = Math.round(ITERATIONS * scale);
  for (let k = 0; k < plan.healthy; k++) yield healthyJob(plan, seed + number++, iterations);
  for (const [fault, jobs] of plan.slow)
    for (let k = 0; k < jobs; k++) {
      let job = slowJob(plan, fault, seed + number++, iterations);
      for (let again = 1; job.effect < 1.1; again++)
        job = slowJob(plan, fault, seed + number + 1_000_000 * again, iterations);
      yield job;
    }
}

function healthyJob(plan: ProbePlan, seed: number, iterations: number): ProbeJob {
  const times = timesOf(specOf(plan, seed, iterations, []));
  return { times, isSlow: false, onset: -1, effect: 1, what: "healthy" };
}

function slowJob(plan: ProbePlan, fault: string, seed: number, iterations: number): ProbeJob {
  const random = seeded(seed);
  const onset = Math.floor(iterations * (0.1 + 0.6 * random()));
  const length = Math.max(20, Math.floor(-Math.log(1 - random()) * plan.share * iterations));
  const to = Math.min(iterations, onset + length);
  const wanted = 1.12 + 1.08 * random() ** 2;
  const isLadder = fault.startsWith("ladder:");
  const cause = isLadder ? fault.slice("ladder:".length) : fault;
  const severity = severityFor(plan, cause, wanted, seed);
  const rung = Math.floor(iterations * 0.06);
  const end = isLadder ? Math.min(iterations, onset + 4 * rung) : to;
  const faults = isLadder
    ? [0.4, 0.7, 1].map((part, k) => {
        const top = severityFor(plan, cause, 1.24, seed);
        const until = k < 2 ? onset + (k + 1) * rung : end;
        return `${cause}:severity=${(1 + (top - 1) * part).toFixed(3)}:from=${onset + 1 + k * rung}:to=${until}`;
      })
    : [`${cause}:severity=${severity.toFixed(3)}:from=${onset + 1}:to=${to}`];
  const times = timesOf(specOf(plan, seed, iterations, faults));
  const twin = timesOf(specOf(plan, seed, iterations, []));
  const sum = (list: readonly number[]): number =>
    list.slice(onset, end).reduce((all, time) => all + time, 0);
  return {
    times,
    isSlow: true,
    onset,
    effect: sum(times) / sum(twin),
    what: isLadder ? "network-slow in steps" : cause.split(":")[0]!,
  };
}

/** The severity with which the job, noise apart, takes `wanted` times as long: by bisection. */
function severityFor(plan: ProbePlan, cause: string, wanted: number, seed: number): number {
  const quiet = (faults: readonly string[]): number =>
    timesOf({ ...specOf(plan, seed, 2, faults), noise: 0 })[1]!;
  const usual = quiet([]);
  let low = 1;
  let high = 16;
  for (let k = 0; k < 14; k++) {
    const middle = (low + high) / 2;
    if (quiet([`${cause}:severity=${middle.toFixed(4)}:from=1`]) / usual < wanted) low = middle;
    else high = middle;
  }
  return high;
}

function specOf(
  plan: ProbePlan,
  seed: number,
  iterations: number,
  faults: readonly string[],
): ClusterSpec {
  // Real jobs differ in noise: robust variations of 0.7 to 3.8 % (p10 to p90 of the golden set).
  const noise = 0.5 + 2.5 * seeded(seed ^ 0x5eed)();
  return { ...DEFAULT_SPEC, ...plan.spec, iterations, seed, noise, faults: faults.map(parseFault) };
}

function timesOf(spec: ClusterSpec): number[] {
  const times: number[] = [];
  for (const { startNs, endNs } of simulate(spec).iterations()) times.push((endNs - startNs) / 1e6);
  return times;
}
