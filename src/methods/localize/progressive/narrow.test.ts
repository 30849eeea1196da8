/** Which device explains the communication that is slow: layouts written down by hand, 4 machines of 4 ranks. */
import { describe, expect, it } from "vitest";
import type { Rank } from "../../../model/ids.ts";
import type { Observation } from "./minimum-durations.ts";
import { deviceOf } from "./narrow.ts";
import type { Wiring } from "./wiring.ts";

const WIRING: Wiring = {
  machineOf: (rank) => `node${Math.floor(rank / 4)}`,
  leafOf: (rank) => `leaf${rank % 4}`,
};

/** tp 2 × dp 4 × pp 2: data-parallel groups across two machines, pipeline links from the first two to the others. */
const GROUPS: readonly (readonly Rank[])[] = [
  [0, 2, 4, 6],
  [1, 3, 5, 7],
  [8, 10, 12, 14],
  [9, 11, 13, 15],
  ...[0, 1, 2, 3, 4, 5, 6, 7].map((rank) => [rank, rank + 8]),
];

function observe(
  isSlow: (ranks: readonly Rank[]) => boolean,
  groups: readonly (readonly Rank[])[] = GROUPS,
): Observation[] {
  return groups.map((ranks) => ({
    ranks,
    isLink: ranks.length === 2,
    ratio: isSlow(ranks) ? 4 : 1,
    growthMs: isSlow(ranks) ? 30 / ranks.length : 0,
    isSlow: isSlow(ranks),
    floor: new Float64Array(0),
  }));
}

const touches = (machine: number) => (ranks: readonly Rank[]) =>
  ranks.some((rank) => Math.floor(rank / 4) === machine);

describe("the device behind slow communication", () => {
  it.each([0, 1, 2, 3])("is machine %s if all that leaves it is slow", (machine) => {
    const all = observe(touches(machine));
    const slowest = all.find(({ isSlow }) => isSlow)!.ranks;
    expect(deviceOf(all, slowest, WIRING)).toMatchObject({
      kind: "machine",
      name: `machine node${machine}`,
      ranks: [0, 1, 2, 3].map((gpu) => 4 * machine + gpu),
      contradicts: 0,
    });
  });

  it("is what lies between two machines if each is fast elsewhere", () => {
    const all = observe((ranks) => touches(0)(ranks) && touches(2)(ranks));
    expect(deviceOf(all, [0, 8], WIRING)).toMatchObject({
      kind: "machine-link",
      ranks: [0, 1, 2, 3, 8, 9, 10, 11],
      contradicts: 0,
      isAmbiguous: false,
    });
  });

  it("is one NIC or one switch as before", () => {
    const nic = observe((ranks) => ranks.includes(5));
    expect(deviceOf(nic, [5, 13], WIRING)).toMatchObject({ kind: "nic", ranks: [5] });
    const leaf = observe((ranks) => ranks.some((rank) => rank % 4 === 2));
    expect(deviceOf(leaf, [2, 10], WIRING)).toMatchObject({ kind: "leaf", name: "leaf2" });
  });

  it("is unknown within groups that all span the same machines", () => {
    const groups = [0, 1, 2, 3].map((gpu) => [gpu, gpu + 4, gpu + 8, gpu + 12]);
    const all = observe(() => true, groups);
    const device = deviceOf(all, groups[0]!, WIRING);
    expect(device).toMatchObject({ kind: "group", contradicts: 0 });
    expect(device.ranks).toHaveLength(16);
  });

  it("counts what the slowest group does not explain against it", () => {
    const slow = new Set(["0,8", "4,12", "9,11,13,15"]);
    const all = observe((ranks) => slow.has(ranks.join()));
    expect(deviceOf(all, [9, 11, 13, 15], WIRING)).toMatchObject({
      kind: "group",
      ranks: [9, 11, 13, 15],
      explains: 1,
      contradicts: 2,
    });
  });
});
