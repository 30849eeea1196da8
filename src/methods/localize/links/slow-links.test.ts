import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StageOperations } from "../../../model/stage-operations.ts";
import { slowLinks, type LinkFinding } from "./slow-links.ts";
import {
  pipelinePasses,
  type PipelineSpec,
} from "../../../../test/support/methods/pipeline-job.ts";
import { runs } from "../../../../test/support/cases.ts";

const RUNS = { numRuns: runs(30, 100), seed: 7 };
const ITERATIONS = 14;
const BEGIN = 8;
const USUAL_MS = 2;

/** A healthy pipeline of any shape, with clocks that are seconds apart. */
const healthy: fc.Arbitrary<PipelineSpec> = fc
  .record({
    stages: fc.integer({ min: 2, max: 8 }),
    microBatches: fc.integer({ min: 1, max: 12 }),
    schedule: fc.constantFrom("1f1b" as const, "gpipe" as const),
    blocking: fc.boolean(),
    noise: fc.double({ min: 0, max: 0.1, noNaN: true }),
    seed: fc.nat(),
    clocks: fc.array(fc.double({ min: -5000, max: 5000, noNaN: true }), {
      minLength: 8,
      maxLength: 8,
    }),
  })
  .map(({ clocks, ...shape }) => ({
    ...shape,
    iterations: ITERATIONS,
    passMs: () => 25,
    transferMs: () => USUAL_MS,
    clockMs: (stage) => clocks[stage]!,
  }));

function withSlow(spec: PipelineSpec, slow: ReadonlySet<number>, delayMs: number): PipelineSpec {
  const delayed = (from: number, to: number, iteration: number): number =>
    USUAL_MS + (iteration >= BEGIN && slow.has(Math.min(from, to)) ? delayMs : 0);
  return { ...spec, transferMs: delayed };
}

function names(found: readonly LinkFinding[]): string[] {
  return found.map(({ link }) => link.join("-"));
}

describe("slow links between pipeline stages", () => {
  it("are found whatever the schedule, the clocks and the delay, each with its beginning and size", () => {
    const choice = fc.record({
      spec: healthy,
      picks: fc.uniqueArray(fc.nat({ max: 6 }), { minLength: 1, maxLength: 3 }),
      delayMs: fc.double({ min: 8, max: 300, noNaN: true }),
    });
    fc.assert(
      fc.property(choice, ({ spec, picks, delayMs }) => {
        const slow = new Set(picks.map((pick) => pick % (spec.stages - 1)));
        const found = slowLinks(pipelinePasses(withSlow(spec, slow, delayMs)));
        const expected = [...slow].sort((a, b) => a - b).map((from) => `${from}-${from + 1}`);
        expect(names(found)).toEqual(expected);
        for (const { iteration, until, delayMs: measured, beforeMs, directions } of found) {
          expect({ iteration, until, directions }).toEqual({
            iteration: BEGIN,
            until: null,
            directions: ["forward", "backward"],
          });
          expect(Math.abs(measured - delayMs)).toBeLessThan(0.1 * delayMs + 1);
          expect(Math.abs(beforeMs - USUAL_MS)).toBeLessThan(1);
        }
      }),
      RUNS,
    );
  });

  it("are not made up for healthy jobs", () => {
    fc.assert(
      fc.property(healthy, (spec) => {
        expect(slowLinks(pipelinePasses(spec))).toEqual([]);
      }),
      RUNS,
    );
  });

  it("are not made up where a stage computes slowly from some iteration on", () => {
    const choice = fc.record({
      spec: healthy,
      pick: fc.nat({ max: 7 }),
      times: fc.double({ min: 1.2, max: 6, noNaN: true }),
    });
    fc.assert(
      fc.property(choice, ({ spec, pick, times }) => {
        const slow = pick % spec.stages;
        const passMs = (stage: number, iteration: number): number =>
          stage === slow && iteration >= BEGIN ? 25 * times : 25;
        expect(slowLinks(pipelinePasses({ ...spec, passMs }))).toEqual([]);
      }),
      RUNS,
    );
  });

  it("are not made up where a clock is set", () => {
    const choice = fc.record({
      spec: healthy,
      pick: fc.nat({ max: 7 }),
      byMs: fc.double({ min: -900, max: 900, noNaN: true }),
    });
    fc.assert(
      fc.property(choice, ({ spec, pick, byMs }) => {
        const set = pick % spec.stages;
        const clockMs = (stage: number, iteration: number): number =>
          spec.clockMs(stage, iteration) + (stage === set && iteration >= BEGIN ? byMs : 0);
        expect(slowLinks(pipelinePasses({ ...spec, clockMs }))).toEqual([]);
      }),
      RUNS,
    );
  });

  it("that recover are told with their end", () => {
    const transferMs = (from: number, to: number, iteration: number): number =>
      Math.min(from, to) === 1 && iteration >= 5 && iteration < 10 ? 40 : USUAL_MS;
    expect(slowLinks(pipelinePasses({ ...PLAIN, transferMs }))).toMatchObject([
      { link: [1, 2], iteration: 5, until: 10 },
    ]);
  });

  it("that are slow in one direction count for less, and not beside one that is slow in both", () => {
    const oneWay = (from: number, to: number, iteration: number): number =>
      from === 2 && to === 1 && iteration >= BEGIN ? 40 : USUAL_MS;
    const [found] = slowLinks(pipelinePasses({ ...PLAIN, transferMs: oneWay }));
    expect(found).toMatchObject({ link: [1, 2], directions: ["backward"] });
    expect(found!.confidence).toBeLessThan(0.6);
    const both = (from: number, to: number, iteration: number): number =>
      Math.min(from, to) === 2 && iteration >= BEGIN ? 40 : oneWay(from, to, iteration);
    expect(names(slowLinks(pipelinePasses({ ...PLAIN, transferMs: both })))).toEqual(["2-3"]);
  });

  it("count where the other direction cannot be told, because its receiver is never idle", () => {
    const tables = pipelinePasses(withSlow(PLAIN, new Set([1, 2]), 60));
    const found = slowLinks(tables.map((table, rank) => (rank === 1 ? neverIdle(table) : table)));
    expect(found).toMatchObject([
      { link: [1, 2], directions: ["forward"], isOneWay: false },
      { link: [2, 3], directions: ["forward", "backward"], isOneWay: false },
    ]);
    expect(found[0]!.confidence).toBeLessThan(found[1]!.confidence);
  });

  it("are not looked for between ranks that compute at the same time", () => {
    // Two ranks a stage: 0 and 1, 2 and 3, … Passes that become shorter bring their ends and beginnings closer.
    const passMs = (_: number, iteration: number): number => (iteration >= BEGIN ? 10 : 25);
    const spec = withSlow({ ...PLAIN, passMs }, new Set([1]), 60);
    const twins = pipelinePasses(spec).flatMap((table) => [
      { ...table, rank: table.rank.map((rank) => 2 * rank) },
      { ...table, rank: table.rank.map((rank) => 2 * rank + 1) },
    ]);
    expect(names(slowLinks(twins))).toEqual(["3-4"]);
  });

  it("are not told from too few iterations or ranks", () => {
    const slow = pipelinePasses(withSlow({ ...PLAIN, iterations: 9 }, new Set([1]), 60));
    expect(slowLinks(slow)).toEqual([]);
    expect(slowLinks(slow.slice(0, 1))).toEqual([]);
    expect(slowLinks([])).toEqual([]);
  });

  it("are looked for in each format by itself", () => {
    const direct = pipelinePasses(PLAIN);
    const byHost = pipelinePasses(withSlow(PLAIN, new Set([0]), 60)).map((table) => ({
      ...table,
      format: "stage-passes-cpu",
    }));
    expect(slowLinks([...direct, ...byHost])).toMatchObject([
      { link: [0, 1], iteration: BEGIN, format: "stage-passes-cpu" },
    ]);
  });
});

const PLAIN: PipelineSpec = {
  stages: 4,
  microBatches: 8,
  iterations: ITERATIONS,
  schedule: "1f1b",
  blocking: false,
  passMs: () => 25,
  transferMs: () => USUAL_MS,
  clockMs: () => 0,
  noise: 0.02,
  seed: 1,
};

/** Weight passes fill the time before each backward pass, as zero-bubble schedules do. */
function neverIdle(table: StageOperations): StageOperations {
  const { kind, startMs, durationMs } = table;
  // Each backward pass twice, the first time for the weight pass before it.
  const rows = [...kind.keys()].flatMap((row) => (kind[row] === 1 ? [row, row] : [row]));
  const isFilled = rows.map((row, i) => kind[row] === 1 && rows[i + 1] === row);
  const freeMs = (row: number): number => startMs[row - 1]! + durationMs[row - 1]!;
  const copied = (column: Int32Array): Int32Array => Int32Array.from(rows, (row) => column[row]!);
  return {
    ...table,
    rank: copied(table.rank),
    replica: copied(table.replica),
    stage: copied(table.stage),
    step: copied(table.step),
    kind: Uint8Array.from(rows, (row, i) => (isFilled[i] ? 2 : kind[row]!)),
    kinds: [...table.kinds, "weight-compute"],
    microBatch: copied(table.microBatch),
    chunk: copied(table.chunk),
    seq: copied(table.seq),
    startMs: Float64Array.from(rows, (row, i) => (isFilled[i] ? freeMs(row) : startMs[row]!)),
    durationMs: Float64Array.from(rows, (row, i) =>
      isFilled[i] ? startMs[row]! - freeMs(row) : durationMs[row]!,
    ),
  };
}
