import { describe, expect, it } from "vitest";
import { frozenSpans } from "./frozen.ts";
import { EPOCH_S, testFleet, type Change } from "../../../test/support/methods/fleet.ts";
import { viewsOf } from "./views.ts";

function spansOf(changes: readonly Change[], machine: number) {
  const fleet = testFleet({ machines: 6, seconds: 400, changes });
  const views = fleet.grids.flatMap((grid) => viewsOf(fleet, grid, []));
  return frozenSpans(machine, views).map(({ fromS, toS }) => [fromS - EPOCH_S, toS - EPOCH_S]);
}

describe("frozen spans", () => {
  it("are seen in one GPU of several, whenever it is the machine's lowest", () => {
    const freeze = { metric: "gpu-power-draw", fromS: 200, to: () => 509.5 };
    const spans = spansOf([{ ...freeze, machine: 3, device: 2 }], 3);
    expect(spans.length).toBeGreaterThan(0);
    for (const [fromS, toS] of spans) {
      expect(fromS).toBeGreaterThanOrEqual(200);
      expect(toS).toBeGreaterThan(380);
    }
  });

  it("are none where values live, where they are whole numbers, or 0", () => {
    expect(spansOf([], 3)).toEqual([]);
    const whole = { machine: 3, metric: "gpu-power-draw", fromS: 100, to: () => 72 };
    const zero = { machine: 3, metric: "gpu-tensor-core-activity", fromS: 100, to: () => 0 };
    expect(spansOf([whole, zero], 3)).toEqual([]);
  });

  it("are none of what stands still on healthy GPUs", () => {
    const memory = { machine: 3, metric: "gpu-memory-used", fromS: 0, to: () => 61_993 };
    expect(spansOf([memory], 3)).toEqual([]);
  });
});
