/** Made-up jobs with one known fault, or two: whom does the what-if analysis accuse? */
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { suspectsOf, type Suspect } from "../../src/methods/localize/what-if/suspects.ts";
import type { Pass } from "./schedule.ts";
import { testTrace } from "./trace.ts";
import { whatIf } from "../../src/methods/localize/what-if/what-if.ts";

interface Faults {
  /** How many times as long the slow worker takes, and from which step on. */
  readonly worker?: number;
  readonly fromStep?: number;
  /** The last stage. */
  readonly stage?: number;
  /** Standard deviation of the logarithm of lengths. */
  readonly lengths?: number;
  /** How many times as long the sequences of one replica are. */
  readonly replica?: number;
}

const JOBS: Readonly<Record<string, (random: Random, steps: number) => Faults>> = {
  healthy: () => ({}),
  "slow worker, 1.25 to 3.25 times": (random) => ({ worker: 1.25 + 2 * random() }),
  "the same from halfway": (random, steps) => ({
    worker: 1.25 + 2 * random(),
    fromStep: steps / 2,
  }),
  "long last stage, 1.3 to 2.3 times": (random) => ({ stage: 1.3 + random() }),
  "lengths of sequences, σ 0.25 to 0.6": (random) => ({ lengths: 0.25 + 0.35 * random() }),
  "lengths and long last stage": (random) => ({
    stage: 1.3 + random(),
    lengths: 0.25 + 0.35 * random(),
  }),
  "lengths and slow worker, 1.75 to 3.75 times": (random) => ({
    worker: 1.75 + 2 * random(),
    lengths: 0.25 + 0.35 * random(),
  }),
  "lengths, one replica always 1.5 times": (random) => ({
    replica: 1.5,
    lengths: 0.25 + 0.35 * random(),
  }),
};

export function madeUp(count: number): string {
  const lines = ["| job | accused |", "|---|---|"];
  for (const [name, faultsOf] of Object.entries(JOBS)) {
    const tally = new Map<string, number>();
    for (let seed = 0; seed < count; seed++) {
      const answer = answerFor(seed, faultsOf);
      if (answer !== null) tally.set(answer, (tally.get(answer) ?? 0) + 1);
    }
    const answers = [...tally].sort((a, b) => b[1] - a[1]).map(([what, n]) => `${n} ${what}`);
    lines.push(`| ${name} | ${answers.join(", ")} |`);
  }
  return `${lines.join("\n")}\n`;
}

/** Null where the job cannot have the fault. */
function answerFor(seed: number, faultsOf: (random: Random, steps: number) => Faults) {
  const random = seeded(seed * 31 + 7);
  const stages = pick(random, [1, 2, 4, 8]);
  const replicas = pick(random, [2, 4, 8]);
  const chunks = stages > 1 ? pick(random, [1, 1, 2]) : 1;
  const microBatches = chunks > 1 ? stages * pick(random, [1, 2]) : pick(random, [4, 8, 12]);
  const steps = pick(random, [3, 6, 10]);
  const noise = pick(random, [0.01, 0.03, 0.05]);
  const [slowReplica, slowStage] = [randomInt(random, replicas), randomInt(random, stages)];
  const { worker = 1, fromStep = 0, stage = 1, lengths = 0, replica = 1 } = faultsOf(random, steps);
  if (stage !== 1 && stages === 1) return null;
  const length = lengthsOf(seed + 5, lengths);
  const factor = (pass: Pass): number => {
    const isSlow = pass.replica === slowReplica && pass.stage === slowStage;
    return (
      length(pass) *
      (isSlow && pass.step >= fromStep ? worker : 1) *
      (pass.stage === stages - 1 ? stage : 1) *
      (pass.replica === slowReplica ? replica : 1)
    );
  };
  const job = { replicas, stages, microBatches, chunks, steps, noise, seed, factor };
  const result = whatIf([testTrace(job)])!;
  const isRight = (suspect: Suspect): boolean =>
    suspect.what === "workers" &&
    suspect.workers.length === 1 &&
    suspect.workers[0]!.replica === slowReplica &&
    suspect.workers[0]!.stage === slowStage &&
    worker !== 1;
  const words = suspectsOf(result).map((suspect) => {
    if (suspect.what === "workers") return isRight(suspect) ? "the worker" : "a worker";
    if (suspect.what === "data") return "data";
    return suspect.stage === stages - 1 ? "last stage" : "another stage";
  });
  return words.join(" then ") || (result.slowdown < 1.05 ? "nobody (S < 1.05)" : "nobody");
}

/** The same for both passes and all stages of a micro-batch. */
function lengthsOf(seed: number, spread: number): (pass: Pass) => number {
  const known = new Map<string, number>();
  const random = seeded(seed);
  return ({ step, replica, microBatch }) => {
    const key = `${step} ${replica} ${microBatch}`;
    let length = known.get(key);
    if (length === undefined) {
      const gauss = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      length = Math.exp(spread * gauss);
      known.set(key, length);
    }
    return length;
  };
}
