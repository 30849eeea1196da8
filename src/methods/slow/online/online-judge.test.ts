import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/support/cases.ts";
import { madeBlocks, type MadeJob, namedIn } from "../../../../test/support/methods/made-blocks.ts";
import { type Block, type JudgedJob, OnlineJudge } from "./online-judge.ts";

function jobOf(ranks: number, more: Partial<JudgedJob> = {}): JudgedJob {
  return { ranks: Array.from({ length: ranks }, (_, place) => place), groups: [], ...more };
}

function judged(
  made: MadeJob,
  more: Partial<JudgedJob> = {},
  blocks: readonly Block[] = madeBlocks(made),
) {
  const judge = new OnlineJudge(jobOf(made.ranks, more));
  return namedIn((block) => judge.step(block), blocks);
}

const anySeed = fc.nat(1e6);

describe("the judge of a running job", () => {
  it("names nobody in a healthy job, however noisy its ranks are", () => {
    fc.assert(
      fc.property(
        anySeed,
        fc.constantFrom(3, 8, 20),
        fc.constantFrom(0.005, 0.02, 0.1),
        (seed, ranks, noise) => {
          expect(judged({ ranks, blocks: 200, seed, noise })).toEqual([]);
        },
      ),
      { numRuns: runs(6, 100) },
    );
  });

  it("names the rank that takes longer, why, since when, and sees it end", () => {
    fc.assert(
      fc.property(
        anySeed,
        fc.constantFrom(3, 8, 20),
        fc.nat(19),
        fc.double({ min: 0.3, max: 3, noNaN: true }),
        fc.constantFrom("gpu" as const, "cpu" as const),
        (seed, ranks, chosen, adds, what) => {
          const place = chosen % ranks;
          const fault = { places: [place], from: 60, to: 100, adds, what };
          const [named, ...others] = judged({ ranks, blocks: 140, seed, faults: [fault] });
          expect(others).toEqual([]);
          expect(named!.last).toMatchObject({
            type: "rank",
            ranks: [place],
            cause: what === "gpu" ? "gpu-slow" : "cpu-stall",
            shape: "lasting",
          });
          expect(named!.last.probability).toBeGreaterThan(0.9);
          expect(named!.block).toBeLessThanOrEqual(66);
          expect(Math.abs(named!.last.sinceMs - (1.7e12 + 60 * 500))).toBeLessThanOrEqual(1000);
          expect(named!.why).toBe("over");
          expect(named!.over).toBeGreaterThan(100);
          expect(named!.over).toBeLessThanOrEqual(106);
        },
      ),
      { numRuns: runs(6, 100) },
    );
  });

  it("says the same of ranks in another order", () => {
    fc.assert(
      fc.property(
        anySeed,
        fc.nat(7),
        fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8 }),
        (seed, place, order) => {
          const made: MadeJob = {
            ranks: 8,
            blocks: 80,
            seed,
            faults: [{ places: [place], from: 50, to: 80, adds: 0.5, what: "gpu" }],
          };
          const blocks = madeBlocks(made);
          const moved = blocks.map((block) => ({ ...block, ...inOrder(block, order) }));
          const [one] = judged(made, {}, blocks);
          const [other] = judged(made, { ranks: order }, moved);
          expect(other!.last.ranks).toEqual(one!.last.ranks);
          expect(other!.block).toBe(one!.block);
          // Noise is learnt of some series after the other, in their order.
          expect(Math.abs(other!.last.probability - one!.last.probability)).toBeLessThan(0.02);
        },
      ),
      { numRuns: runs(5, 50) },
    );
  });

  it("tells what was compared, in milliseconds an iteration", () => {
    const fault = { places: [2], from: 60, to: 90, adds: 0.5, what: "gpu" as const };
    const [named] = judged({ ranks: 4, blocks: 90, seed: 1, faults: [fault], noise: 0.001 });
    const { compared } = named!.last;
    expect(compared.group).toBe("all ranks");
    expect(compared.ranks.map(({ rank }) => rank)).toEqual([2, 0, 1, 3]);
    const [slow, peer] = compared.ranks;
    // Own work: 50 ms before, 100 ms now, in iterations of 80 and 130 ms.
    expect(slow!.ownMs[0]).toBeCloseTo(50, -0.5);
    expect(slow!.ownMs[1]).toBeCloseTo(100, -0.5);
    expect(slow!.insideMs[1]).toBeCloseTo(30, -0.5);
    expect(peer!.ownMs[1]).toBeCloseTo(50, -0.5);
    expect(peer!.insideMs[1]).toBeCloseTo(80, -0.5);
    expect(compared.leadMs[0]).toBeCloseTo(0, -0.5);
    expect(compared.leadMs[1]).toBeCloseTo(50, -0.5);
  });

  it("names a second rank while the first one lasts, and sees each of them end", () => {
    const faults = [
      { places: [2], from: 60, to: 140, adds: 0.6, what: "gpu" as const },
      { places: [5], from: 90, to: 120, adds: 0.9, what: "cpu" as const },
    ];
    const named = judged({ ranks: 8, blocks: 180, seed: 3, faults });
    expect(named.map(({ last, why }) => [last.ranks, last.cause, why])).toEqual([
      [[2], "gpu-slow", "over"],
      [[5], "cpu-stall", "over"],
    ]);
    expect(named[1]!.over).toBeGreaterThan(120);
    expect(named[1]!.over).toBeLessThan(127);
    expect(named[0]!.over).toBeGreaterThan(140);
  });

  it("names two that become slow together", () => {
    const faults = [
      { places: [1], from: 60, to: 100, adds: 0.8, what: "gpu" as const },
      { places: [6], from: 60, to: 100, adds: 0.7, what: "gpu" as const },
    ];
    const named = judged({ ranks: 8, blocks: 100, seed: 4, faults });
    const ranks = named.flatMap(({ last }) => last.ranks).toSorted((a, b) => a - b);
    expect([named.length, ranks]).toEqual([2, [1, 6]]);
  });

  it("names a machine whose ranks are slow together, as one culprit", () => {
    for (const size of [2, 4, 8]) {
      const places = Array.from({ length: size }, (_, i) => size + i);
      const faults = [{ places, from: 60, to: 100, adds: 0.5, what: "cpu" as const }];
      const machineOf = Array.from({ length: 4 * size }, (_, place) => Math.floor(place / size));
      const named = judged({ ranks: 4 * size, blocks: 130, seed: size, faults }, { machineOf });
      expect(named.map(({ last, why }) => [last.type, last.ranks, last.cause, why])).toEqual([
        ["machine", places, "cpu-stall", "over"],
      ]);
    }
  });

  it("names who sends slowly where nobody leads", () => {
    const faults = [{ places: [3], from: 60, to: 100, adds: 0.5, what: "wire" as const }];
    const named = judged({ ranks: 8, blocks: 130, seed: 5, faults });
    expect(named.map(({ last, why }) => [last.type, last.ranks, last.cause, why])).toEqual([
      ["wire", [3], "network-slow", "over"],
    ]);
    expect(named[0]!.last.compared.wires![0]).toMatchObject({ ranks: [3] });
  });

  it("says that all became slower, after some seconds, where iterations grew and nobody leads", () => {
    const faults = [{ places: [], from: 100, to: 160, adds: 0.8, what: "pace" as const }];
    const named = judged({ ranks: 8, blocks: 190, seed: 6, faults });
    expect(named.map(({ last, why }) => [last.type, last.ranks, why])).toEqual([
      ["all", [], "over"],
    ]);
    expect(named[0]!.block).toBeGreaterThanOrEqual(103);
  });

  it("takes what stays slow for all as usual after two minutes, and judges on", () => {
    const faults = [
      { places: [], from: 100, to: 600, adds: 0.8, what: "pace" as const },
      { places: [3], from: 420, to: 460, adds: 0.8, what: "gpu" as const },
    ];
    const named = judged({ ranks: 8, blocks: 500, seed: 12, faults });
    expect(named.map(({ last, over, why }) => [last.type, last.ranks, over !== null, why])).toEqual(
      [
        ["all", [], true, "over"],
        ["rank", [3], true, "over"],
      ],
    );
    expect(named[0]!.over).toBeLessThan(350);
  });

  it("takes the word back where somebody leads after all", () => {
    const faults = [
      { places: [], from: 100, to: 200, adds: 0.8, what: "pace" as const },
      { places: [4], from: 130, to: 200, adds: 1.2, what: "gpu" as const },
    ];
    const named = judged({ ranks: 8, blocks: 160, seed: 7, faults });
    expect(named.map(({ last, why }) => [last.type, why])).toEqual([
      ["all", "revised"],
      ["rank", null],
    ]);
  });

  it("names who is slow now and then; of the job's first rank it is never surer than one half", () => {
    const spikes = (place: number) => [
      { places: [place], from: 60, to: 220, adds: 1.5, what: "gpu" as const, every: 6 },
    ];
    const named = judged({ ranks: 8, blocks: 280, seed: 8, faults: spikes(5) });
    expect(named.map(({ last, why }) => [last.ranks, last.shape, last.cause, why])).toEqual([
      [[5], "now-and-then", "gpu-slow", "over"],
    ]);
    expect(judged({ ranks: 8, blocks: 280, seed: 8, faults: spikes(0) })).toEqual([]);
  });

  it("leaves the cause open where a rank's GPU is never seen", () => {
    const faults = [{ places: [2], from: 60, to: 100, adds: 0.6, what: "cpu" as const }];
    const made: MadeJob = { ranks: 8, blocks: 100, seed: 9, faults };
    // Its CPU waits for it before each call.
    const blocks = madeBlocks(made).map((block) => ({
      ...block,
      late: block.late.map((share, place) => share + block.gpu[place]!),
      gpu: block.gpu.map(() => 0),
    }));
    const [named] = judged(made, {}, blocks);
    expect(named!.last).toMatchObject({ ranks: [2], cause: null });
  });

  it("judges without ranks that are not heard of, and does not name them", () => {
    const faults = [{ places: [2], from: 60, to: 100, adds: 0.6, what: "gpu" as const }];
    const without = (place: number) =>
      judged({
        ranks: 8,
        blocks: 130,
        seed: 10,
        faults,
        isHeard: (one, block) => one !== place || block % 2 === 0,
      });
    expect(without(5).map(({ last }) => last.ranks)).toEqual([[2]]);
    // That iterations take longer is seen on the others, who only wait.
    expect(without(2).map(({ last }) => last.type)).toEqual(["all"]);
    const nobody = judged({ ranks: 8, blocks: 130, seed: 10, faults, isHeard: () => false });
    expect(nobody).toEqual([]);
  });

  it("names nobody of a job that stands, and goes on as before", () => {
    const blocks = madeBlocks({ ranks: 8, blocks: 120, seed: 11 });
    const standing = blocks.map((block, k) =>
      k < 60 || k >= 90
        ? block
        : {
            ...block,
            inside: block.inside.map((_, place) => (place === 3 ? 0 : 1)),
            issued: block.issued.map(() => 0),
            ended: block.ended.map(() => 0),
          },
    );
    const judge = new OnlineJudge(jobOf(8));
    const states = standing.map((block) => judge.step(block));
    expect(states.flatMap(({ culprits }) => culprits)).toEqual([]);
    expect(states.map(({ state }) => state).filter((state) => state === "stands").length).toBe(25);
    expect(states.at(-1)!.state).toBe("healthy");
  });
});

function inOrder(block: Block, order: readonly number[]): Partial<Block> {
  const moved = (column: Float32Array): Float32Array => column.map((_, i) => column[order[i]!]!);
  const { inside, late, gpu, onWire, issued, ended } = block;
  return {
    inside: moved(inside),
    late: moved(late),
    gpu: moved(gpu),
    onWire: moved(onWire),
    issued: moved(issued),
    ended: moved(ended),
  };
}
