import { describe, expect, test } from "vitest";
import { slowDowns } from "./slow-downs.ts";
import { makeSeries } from "../../../test/support/methods/series.ts";
import { trackSeries } from "./track-series.ts";

const even = (): number => 1000;
const slow = (i: number): number => (i < 81 ? 1000 : 1600);

function job(ranks: number, slowRanks: readonly number[]): ReturnType<typeof slowDowns> {
  return slowDowns(
    Array.from({ length: ranks }, (_, rank) =>
      trackSeries(
        makeSeries({
          level: slowRanks.includes(rank) ? slow : even,
          to: 160,
          rank,
          seed: rank + 1,
        }),
      ),
    ),
  );
}

describe("a slow-down", () => {
  test("that all ranks show is the job's and names nobody", () => {
    const found = job(8, [0, 1, 2, 3, 4, 5, 6, 7]);
    expect(found).toHaveLength(1);
    expect(found[0]!.alone).toEqual([]);
    expect(found[0]!.shownBy).toHaveLength(8);
    expect(found[0]!.change.iteration).toBe(81);
  });

  test("that one worker of many shows names it", () => {
    const found = job(10, [6]);
    expect(found.map(({ alone }) => alone)).toEqual([[6]]);
  });

  test.each([
    [10, [6, 7, 8, 9]],
    [9, [0, 4, 8]],
    [8, [1, 3, 5, 7]],
    [8, [0, 1, 2, 3, 4]],
  ])("that some of %i workers show names them: %j", (ranks, slowRanks) => {
    expect(job(ranks, slowRanks).map(({ alone }) => alone)).toEqual([slowRanks]);
  });

  test("that most show, and the rest a little of, is the job's", () => {
    const all = Array.from({ length: 8 }, (_, rank) =>
      trackSeries(
        makeSeries({
          level: (i) => (i < 81 ? 1000 : rank < 4 ? 1600 : 1250),
          to: 160,
          rank,
          seed: rank + 1,
        }),
      ),
    );
    expect(slowDowns(all).map(({ alone }) => alone)).toEqual([[]]);
  });

  test("in a single series names nobody", () => {
    expect(job(1, [0]).map(({ alone }) => alone)).toEqual([[]]);
  });

  test("is none where all is even", () => expect(job(5, [])).toEqual([]));

  test("of one job does not make another job's ranks its peers", () => {
    const rank = (folder: string, number: number, level: (i: number) => number) => {
      const series = makeSeries({ level, to: 160, rank: number, seed: number + 1 });
      return trackSeries({ ...series, file: `${folder}/rank${number}.log` });
    };
    const found = slowDowns([
      ...[0, 1, 2, 3].map((number) => rank("a", number, slow)),
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((number) => rank("b", number, even)),
    ]);
    expect(found.map(({ alone, covering }) => [alone, covering])).toEqual([[[], 4]]);
  });

  test("of a tenth in one series of many is wandering, and nobody is named", () => {
    const all = Array.from({ length: 40 }, (_, number) =>
      trackSeries(
        makeSeries({
          level: (i) => (number === 7 && i > 80 ? 1130 : 1000),
          to: 160,
          rank: number,
          seed: number + 1,
        }),
      ),
    );
    expect(slowDowns(all)).toEqual([]);
  });
});
