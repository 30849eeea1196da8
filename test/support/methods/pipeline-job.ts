/**
 * A pipeline for tests: what each stage would log, given how long passes and transfers take. The same rule as in
 * slow-links.ts, run forwards: a pass begins when the stage is free and its tensor has arrived.
 */
import { seeded, type Random } from "../../../src/base/random.ts";
import type { StageOperations } from "../../../src/model/stage-operations.ts";

export interface PipelineSpec {
  readonly stages: number;
  readonly microBatches: number;
  readonly iterations: number;
  /** "1f1b" as Megatron does it; "gpipe": all forward passes first. */
  readonly schedule: "1f1b" | "gpipe";
  /** The sender computes on only when its tensor has arrived: queues everywhere behind a slow link. */
  readonly blocking: boolean;
  /** A stage's forward pass; a backward pass takes twice as long. Iterations from 1. */
  readonly passMs: (stage: number, iteration: number) => number;
  /** From stage `from` to its neighbour `to`. */
  readonly transferMs: (from: number, to: number, iteration: number) => number;
  /** What a stage's clock is ahead. */
  readonly clockMs: (stage: number, iteration: number) => number;
  /** Passes and transfers take up to this share longer. */
  readonly noise: number;
  readonly seed: number;
}

const KINDS = ["forward-compute", "backward-compute"] as const;

interface Pass {
  readonly kind: number;
  readonly microBatch: number;
}

/** One table a stage, as the reader hands them over; rank is the stage. */
export function pipelinePasses(spec: PipelineSpec): StageOperations[] {
  const random = seeded(spec.seed);
  const rows = Array.from({ length: spec.stages }, () => [] as Row[]);
  for (let iteration = 1; iteration <= spec.iterations; iteration++) {
    oneIteration(spec, iteration, random, rows);
  }
  return rows.map((own, stage) => tableOf(own, stage));
}

interface Row extends Pass {
  readonly step: number;
  readonly startMs: number;
  readonly durationMs: number;
}

function oneIteration(
  spec: PipelineSpec,
  step: number,
  random: Random,
  rows: readonly Row[][],
): void {
  const { stages, noise } = spec;
  const longer = (ms: number): number => ms * (1 + noise * random());
  const todo = rows.map((_, stage) => orderOf(spec, stage));
  const freeMs = rows.map(() => 0);
  /** When the tensor for a pass is there; forward passes of the first stage need none. */
  const arrivesMs = new Map<string, number>();
  const key = (stage: number, { kind, microBatch }: Pass): string =>
    `${stage}/${kind}/${microBatch}`;
  for (let left = todo.flat().length; left > 0;) {
    for (let stage = 0; stage < stages; stage++) {
      const pass = todo[stage]![0];
      if (!pass) continue;
      const isSource = pass.kind === 0 ? stage === 0 : stage === stages - 1;
      const there = isSource ? 0 : arrivesMs.get(key(stage, pass));
      if (there === undefined) continue;
      const startMs = Math.max(freeMs[stage]!, there);
      const durationMs = longer(spec.passMs(stage, step) * (pass.kind === 0 ? 1 : 2));
      freeMs[stage] = startMs + durationMs;
      const to = pass.kind === 0 ? stage + 1 : stage - 1;
      if (to >= 0 && to < stages) {
        const arrives = freeMs[stage]! + longer(spec.transferMs(stage, to, step));
        arrivesMs.set(key(to, pass), arrives);
        if (spec.blocking) freeMs[stage] = arrives;
      }
      const clockMs = spec.clockMs(stage, step);
      rows[stage]!.push({ ...pass, step, startMs: startMs + clockMs, durationMs });
      todo[stage]!.shift();
      left--;
    }
  }
}

function orderOf({ stages, microBatches, schedule }: PipelineSpec, stage: number): Pass[] {
  const ahead = schedule === "gpipe" ? microBatches : Math.min(microBatches, stages - 1 - stage);
  const passes: Pass[] = [];
  for (let i = 0; i < microBatches + ahead; i++) {
    if (i < microBatches) passes.push({ kind: 0, microBatch: i });
    if (i >= ahead) passes.push({ kind: 1, microBatch: i - ahead });
  }
  return passes;
}

function tableOf(rows: readonly Row[], stage: number): StageOperations {
  const unknown = new Int32Array(rows.length).fill(-1);
  return {
    file: `rank${stage}.log`,
    format: "stage-passes",
    writer: stage,
    rank: new Int32Array(rows.length).fill(stage),
    replica: unknown,
    stage: unknown,
    step: Int32Array.from(rows, ({ step }) => step),
    kind: Uint8Array.from(rows, ({ kind }) => kind),
    kinds: KINDS,
    microBatch: Int32Array.from(rows, ({ microBatch }) => microBatch),
    chunk: unknown,
    seq: Int32Array.from(rows, ({ microBatch }) => microBatch),
    startMs: Float64Array.from(rows, ({ startMs }) => startMs),
    durationMs: Float64Array.from(rows, ({ durationMs }) => durationMs),
  };
}
