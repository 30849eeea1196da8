/** Jobs that tests make up, and in which order their stages run passes: 1F1B, interleaved where stages are virtual. */

export interface TestJob {
  readonly replicas: number;
  readonly stages: number;
  /** A multiple of `stages` where there are virtual stages. */
  readonly microBatches: number;
  /** Virtual stages; 1 where left out. */
  readonly chunks?: number;
  readonly steps: number;
  readonly seed?: number;
  /** How much longer than usual, for a pass. */
  readonly factor?: (pass: Pass) => number;
  /** Standard deviation of each duration, as a share; 0.01 where left out. */
  readonly noise?: number;
  /** Whether the very first receive of the first stage, from nobody, is not noted. */
  readonly dropsFirst?: boolean;
  /** Whether gradients are reduced as soon as a part of the model is done, and some separately at the end. */
  readonly overlaps?: boolean;
  /** Whether communication is noted from the last arrival on, as the published timelines have it. */
  readonly fromLastArrival?: boolean;
}

export interface Pass {
  readonly step: number;
  readonly replica: number;
  readonly stage: number;
  readonly chunk: number;
  readonly microBatch: number;
  readonly isForward: boolean;
}

/** Pass order of one stage: warm-up, one forward and one backward in turn, the rest. */
export function passesOf(job: TestJob, step: number, replica: number, stage: number): Pass[] {
  const { stages, microBatches, chunks = 1 } = job;
  const total = microBatches * chunks;
  const nth = (n: number, isForward: boolean): Pass => {
    // Micro-batches go through a part of the model in bunches as large as the pipeline is long.
    const bunch = chunks === 1 ? 1 : stages;
    const [round, within] = [Math.floor(n / (bunch * chunks)), n % (bunch * chunks)];
    const turn = Math.floor(within / bunch);
    return {
      step,
      replica,
      stage,
      isForward,
      chunk: isForward ? turn : chunks - 1 - turn,
      microBatch: round * bunch + (within % bunch),
    };
  };
  const warm = chunks === 1 ? stages - stage - 1 : (stages - stage - 1) * 2 + (chunks - 1) * stages;
  const passes: Pass[] = [];
  for (let n = 0; n < Math.min(warm, total); n++) passes.push(nth(n, true));
  for (let n = 0; n < total; n++) {
    if (warm + n < total) passes.push(nth(warm + n, true));
    passes.push(nth(n, false));
  }
  return passes;
}
