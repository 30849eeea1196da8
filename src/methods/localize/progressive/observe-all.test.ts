import { describe, expect, test } from "vitest";
import type { Group } from "../../../model/job.ts";
import { comparedWithPeers, type FloorSeries } from "./observe-all.ts";

/** As many groups as floors, of eight ranks on eight machines each. */
function compared(...floors: number[]): boolean[] {
  const groups = floors.map((_, id) => ({ id, role: "DATA_PARALLEL" }) as Partial<Group> as Group);
  const series = floors.map((ms, group): FloorSeries => {
    const ranks = Array.from({ length: 8 }, (__, m) => 8 * m + group);
    return { ranks, group, isLink: false, count: 3, floorMs: Float64Array.of(ms, ms, ms) };
  });
  const wiring = { machineOf: (rank: number) => Math.floor(rank / 8), leafOf: () => null };
  return comparedWithPeers(series, groups, wiring).map(({ isSlow }) => isSlow);
}

describe("groups that do as much", () => {
  test("of four one may be slow, if it takes several times as long as three that agree", () => {
    expect(compared(10, 10.2, 9.9, 60)).toEqual([false, false, false, true]);
  });

  test("of four one that takes thrice as long may be built so", () => {
    expect(compared(10, 10.2, 9.9, 30)).toEqual([false, false, false, false]);
  });

  test("of three nobody is compared", () => {
    expect(compared(10, 10.2, 900)).toEqual([]);
  });
});
