/** Ranks of one group that run the same program, for tests: how long they stay in each collective, and when they call. */
import type { OperatorTable } from "../../../src/model/operators.ts";
import type { RankOperators } from "../../../src/model/rank-operators.ts";

export interface TestJob {
  readonly ranks: number;
  readonly iterations: number;
  /** Collectives of an iteration. */
  readonly calls?: number;
  readonly iterationMs: (iteration: number) => number;
  /** Milliseconds a rank stays in the nth collective of an iteration. */
  readonly stayMs: (rank: number, iteration: number, nth: number) => number;
  /** How much later than usual it calls the nth. */
  readonly lateMs?: (rank: number, iteration: number, nth: number) => number;
}

export function testRanks(job: TestJob): { readonly cut: RankOperators[] } {
  return { cut: Array.from({ length: job.ranks }, (_, rank) => operatorsOf(job, rank)) };
}

function operatorsOf(job: TestJob, rank: number): RankOperators {
  const { iterations, calls = 4, iterationMs, stayMs, lateMs = () => 0 } = job;
  const numbers = Array.from({ length: iterations }, (_, i) => i + 1);
  const begins = numbers.map((_, i) =>
    numbers.slice(0, i).reduce((sum, n) => sum + iterationMs(n), 0),
  );
  const count = iterations * calls;
  const of = (value: (i: number, nth: number) => number): Float64Array =>
    Float64Array.from({ length: count }, (_, op) => value(Math.floor(op / calls), op % calls));
  const ops: Partial<OperatorTable> = {
    count,
    group: new Int32Array(count),
    seq: Int32Array.from({ length: count }, (_, op) => op + 1),
    isP2p: new Uint8Array(count),
    isSend: new Uint8Array(count),
    peer: new Int32Array(count).fill(-1),
    createdNs: of((i, nth) => 1e6 * (begins[i]! + nth + lateMs(rank, i + 1, nth))),
    durationMs: Float32Array.from(of((i, nth) => stayMs(rank, i + 1, nth))),
    inputNumel: of((_, nth) => nth),
    name: new Int32Array(count),
    names: ["all_reduce"],
  };
  return {
    rank,
    file: `fr_${rank}`,
    ops: ops as OperatorTable,
    epochNs: 0n,
    groupIds: Int32Array.of(0),
    hasSequence: true,
    iteration: Float64Array.from(numbers),
    from: Int32Array.from(numbers, (_, i) => i * calls),
    to: Int32Array.from(numbers, (_, i) => (i + 1) * calls),
    durationMs: Float64Array.from(numbers, iterationMs),
    startMs: Float64Array.from(begins),
  };
}
