/** The question "what if nobody straggled?" asked of a job whose stages were traced (what-if/README.md). */
import { mean } from "../../base/numbers.ts";
import { count, rankWords } from "../../base/text.ts";
import type { ReplayedWhatIf } from "../../model/facts.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Job } from "../../model/job.ts";
import type { Method } from "../../model/method.ts";
import type { StageOperations } from "../../model/stage-operations.ts";
import { suspectsOf, type Suspect } from "./what-if/suspects.ts";
import { whatIf, type WhatIf } from "./what-if/what-if.ts";

/** Chosen by judgement: the paper's three causes are distinguished by shares, not by error rates. */
const WORKER_WEIGHT = 0.8;
const LEAD_WEIGHT = 0.7;
const SECOND_WEIGHT = 0.45;
/** One replica: nobody else has the same stage, so that a slow device looks like a long stage. */
const ALONE_WEIGHT = 0.45;
/** In so few steps a worker may be slow by chance. */
const FEW_STEPS = 3;
const MAX_WORKERS_TOLD = 16;

export const whatIfMethod: Method = {
  id: "localize/what-if",
  applies: (job) =>
    job.stageOperations.some(
      ({ stage, replica }) => stage.some((at) => at >= 0) && replica.some((at) => at >= 0),
    ),
  *run(job) {
    for (const files of jobsOf(job)) {
      const result = whatIf(files);
      if (result) yield findingOf(files, result);
    }
  },
};

/** A file of all ranks is a trace of its own; files of single ranks belong together. */
function jobsOf({ stageOperations }: Job): (readonly StageOperations[])[] {
  const whole = stageOperations.filter(({ writer }) => writer === null);
  const single = stageOperations.filter(({ writer }) => writer !== null);
  return [...whole.map((file) => [file]), ...(single.length > 0 ? [single] : [])];
}

function findingOf(files: readonly StageOperations[], result: WhatIf): NewFinding {
  const suspects = suspectsOf(result);
  // Without ranks a person could not find them.
  const accuses = suspects
    .flatMap((suspect, at) => accusationsOf(result, suspect, at))
    .filter(({ ranks }) => ranks.every((rank) => rank >= 0));
  const weight = accuses.reduce((most, one) => Math.max(most, one.weight), 0.2);
  const { slowdown, steps, actualMs, idealMs } = result;
  const explains = suspects.map((suspect) => wordsOf(result, suspect)).join("; ");
  return {
    says: `steps take ${slowdown.toFixed(2)} times as long as if all ranks took equal time (${Math.round(mean(actualMs))} instead of ${Math.round(mean(idealMs))} ms in ${count(steps.length, "step")})${explains && `: ${explains}`}`,
    weight,
    at: files.slice(0, 4).map(({ file }) => ({ file })),
    data: figuresOf(result),
    accuses,
    clears: [],
  };
}

function figuresOf(result: WhatIf): ReplayedWhatIf {
  return {
    fact: "replayed-what-if",
    slowdown: round(result.slowdown),
    workerShare: round(result.workerShare),
    lastStageShare: round(result.stageShares.at(-1)!),
    stageShares: result.stageShares.map(round),
    evenMicroBatchesShare: round(result.evenPassesShare),
    evenStagesShare: round(result.evenStagesShare),
    passCorrelation: round(result.passCorrelation),
    recordedMs: round(mean(result.recordedMs)),
    actualMs: round(mean(result.actualMs)),
    idealMs: round(mean(result.idealMs)),
    steps: result.steps.length,
    incompleteSteps: result.incompleteSteps,
    replicas: result.replicas,
    stages: result.stages,
    byKind: Object.fromEntries(result.byKind.map(({ kind, slowdown }) => [kind, round(slowdown)])),
    byStage: result.byStage.map(round),
    workers: result.workers.slice(0, MAX_WORKERS_TOLD).map((worker) => ({
      rank: worker.rank,
      replica: worker.replica,
      stage: worker.stage,
      slowdown: round(worker.slowdown),
      computeMs: round(mean(worker.computeMs)),
    })),
  };
}

function wordsOf(result: WhatIf, suspect: Suspect): string {
  const part = `${Math.round(100 * Math.min(1, suspect.share))} % of it`;
  switch (suspect.what) {
    case "workers":
      return `${rankWords(suspect.workers.map(({ rank }) => rank))} ${suspect.workers.length === 1 ? "causes" : "cause"} ${part}`;
    case "stage":
      return `stage ${suspect.stage} of ${result.stages} causes ${part}`;
    case "data":
      return `differences between micro-batches cause ${part}, forward and backward passes alike (correlation ${result.passCorrelation.toFixed(2)})`;
  }
}

function accusationsOf(result: WhatIf, suspect: Suspect, place: number): Accusation[] {
  const why = `steps take ${result.slowdown.toFixed(2)} times as long as they could: ${wordsOf(result, suspect)}`;
  const weight = place === 0 ? LEAD_WEIGHT : SECOND_WEIGHT;
  if (suspect.what === "data") {
    const who = { kind: "regression", type: "data", ranks: [], link: null } as const;
    return [{ ...who, cause: "data-imbalance", weight, why }];
  }
  if (suspect.what === "workers") {
    const weight = result.steps.length < FEW_STEPS ? ALONE_WEIGHT : WORKER_WEIGHT;
    return suspect.workers.map(({ rank }) => slowDevice([rank], weight, why));
  }
  const { stage } = suspect;
  const ranks = result.workers
    .filter((worker) => worker.stage === stage)
    .map(({ rank }) => rank)
    .sort((a, b) => a - b);
  // The last stage is long in many jobs (the loss); one in the middle, alone, is more likely a slow device.
  if (result.replicas === 1 && stage < result.stages - 1) {
    return [slowDevice(ranks, ALONE_WEIGHT, `${why}; no other replica has that stage`)];
  }
  return [
    {
      kind: "regression",
      type: "stage",
      ranks,
      link: null,
      cause: "stage-imbalance",
      weight: result.replicas === 1 ? Math.min(weight, ALONE_WEIGHT) : weight,
      why,
    },
  ];
}

function slowDevice(ranks: readonly number[], weight: number, why: string): Accusation {
  return { kind: "fail-slow", type: "rank", ranks, link: null, cause: "gpu-slow", weight, why };
}

function round(value: number): number | null {
  return Number.isFinite(value) ? Math.round(value * 1e4) / 1e4 : null;
}
