import { describe, expect, it } from "vitest";
import { nicMilliseconds } from "../../../eval/machines/fleet/nic-milliseconds.ts";
import { findMachines } from "./find-machines.ts";

describe("NICs by the millisecond (Minder §6.6)", () => {
  it("show both of two bad ones among four machines", () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const { fleet, truth } = nicMilliseconds({ seed });
      const found = findMachines(fleet).faulty.map(
        ({ machine, deviations }) => `${machine}/${deviations[0]!.device}`,
      );
      const [grid] = fleet.grids;
      expect(found.toSorted()).toEqual(
        truth.bad
          .map(({ machine, nic }) => `${fleet.machines[machine]}/${grid!.devices[nic]}`)
          .toSorted(),
      );
    }
  });

  it("accuse nobody where all are well", () => {
    for (const seed of [1, 2, 3]) {
      const { fleet } = nicMilliseconds({ seed, badMachines: 0 });
      expect(findMachines(fleet).faulty).toEqual([]);
    }
  });
});
