import { describe, expect, it } from "vitest";
import type { PointsReport } from "../../wire/messages.ts";
import { PointTable } from "./point-table.ts";

function points(
  rows: readonly (readonly [rank: number, iteration: number, ms: number])[],
): PointsReport {
  const floats = (of: (row: readonly [number, number, number]) => number): Float32Array =>
    Float32Array.from(rows, of);
  return {
    kind: "points",
    job: "j",
    run: "r",
    rank: Uint32Array.from(rows, ([rank]) => rank),
    iteration: Float64Array.from(rows, ([, iteration]) => iteration),
    endMs: Float64Array.from(rows, ([, iteration]) => 1000 * iteration),
    durationMs: floats(([, , ms]) => ms),
    collectiveMs: floats(([rank]) => rank),
    sendMs: floats(() => 0),
    recvMs: floats(() => 0),
    issueMs: floats(() => 1),
  };
}

describe("PointTable", () => {
  it("keeps rows by iteration and rank, in whatever order they come, each once", () => {
    const table = new PointTable();
    expect(
      table.add(
        points([
          [7, 2, 30],
          [1, 1, 10],
        ]),
        0,
      ).added,
    ).toBe(2);
    expect(
      table.add(
        points([
          [1, 2, 20],
          [7, 2, 30],
        ]),
        5,
      ).added,
    ).toBe(1);
    expect(table.toldOf(2)).toBe(2);
    expect(table.heardOf(2)).toBe(0);
    expect(table.whole(2)).toMatchObject({ iteration: 2, ranks: 2, endMs: 2000 });
    const [first, second] = [1, 7].map((rank) => table.slotOf(rank)) as [number, number];
    const [one, two] = [1, 2].map((iteration) => table.rowOf(iteration)!);
    expect([one!.durationMs[first], one!.durationMs[second]]).toEqual([10, NaN]);
    expect([two!.durationMs[first], two!.durationMs[second]]).toEqual([20, 30]);
    expect([two!.collectiveMs[first], two!.collectiveMs[second]]).toEqual([1, 7]);
  });

  it("grows with the ranks that come, and loses nothing", () => {
    const table = new PointTable();
    const ranks = Array.from({ length: 1000 }, (_, rank) => rank);
    for (const rank of ranks) table.add(points([[rank, 1, rank + 1]]), 0);
    const { durationMs } = table.rowOf(1)!;
    expect(ranks.map((rank) => durationMs[table.slotOf(rank)])).toEqual(
      ranks.map((rank) => rank + 1),
    );
    expect(table.active(0)).toBe(1000);
  });

  it("forgets what is long past, and takes nothing from before that", () => {
    const table = new PointTable();
    for (let i = 0; i < 500; i++) table.add(points([[0, i, 1]]), 0);
    expect(table.iterations.length).toBeLessThanOrEqual(96);
    expect(table.add(points([[1, 3, 1]]), 0).added).toBe(0);
    expect(table.iterations).not.toContain(3);
  });

  it("takes an iteration for there when a quarter of the ranks that are heard have told of it, never one alone", () => {
    const table = new PointTable();
    const tell = (ranks: number, iteration: number): void =>
      void table.add(points(Array.from({ length: ranks }, (_, rank) => [rank, iteration, 1])), 0);
    tell(40, 1);
    tell(4, 2);
    expect(table.newest).toBe(1);
    table.withoutSilent(36);
    expect(table.newest).toBe(2);
    tell(4, 3);
    expect(table.newest).toBe(3);
    table.withoutSilent(39);
    tell(1, 1e12);
    expect(table.newest).toBe(3);
    // They are back, and their reports are not there yet.
    table.withoutSilent(0);
    tell(9, 4);
    expect(table.newest).toBe(3);
    tell(10, 4);
    expect(table.newest).toBe(4);
  });

  it("sees that the job counts again from an earlier number, when most ranks do", () => {
    const table = new PointTable();
    table.add(
      points([
        [0, 50, 1],
        [1, 50, 1],
        [2, 50, 1],
      ]),
      0,
    );
    expect(table.add(points([[0, 20, 1]]), 0).beganAgain).toBe(false);
    expect(table.add(points([[1, 20, 1]]), 0).beganAgain).toBe(true);
  });

  it("does not take for a new beginning what an agent tells again after it was cut off", () => {
    const table = new PointTable();
    const all = Array.from({ length: 40 }, (_, i) => [0, i + 1, 1000] as const);
    table.add(points(all), 0);
    table.withoutSilent(1);
    expect(table.add(points(all.slice(20)), 0)).toEqual({ added: 0, beganAgain: false });
    // The same numbers, later: a checkpoint was loaded.
    const later = points(all.slice(20, 30));
    const again = { ...later, endMs: later.endMs.map((ms) => ms + 60_000) };
    expect(table.add(again, 0).beganAgain).toBe(true);
  });
});
