import { expect, it } from "vitest";
import type { MetricGrid } from "../../model/fleet.ts";
import { testFleet } from "../../../test/support/methods/fleet.ts";
import { busierThanSiblings } from "./busier-than-siblings.ts";
import { findMachines } from "./find-machines.ts";

/** No sensor stands still. */
const wobble = (at: number): number => 0.002 * Math.sin(at * at);

/** SM activity of eight GPUs: one of machine 5 works on while all others wait, from 300 s on. */
function activity(broken = 8): { fleet: ReturnType<typeof testFleet>; grid: MetricGrid } {
  const fleet = testFleet({ seconds: 1200, stepS: 15, gpus: 8 });
  const like = fleet.grids.find(({ metric }) => metric === "gpu-tensor-core-activity")!;
  const { ticks } = like;
  const low = like.mean.map((_, at) =>
    broken < 8 && Math.floor(at / ticks) === 3 ? 0 : 0.6 - wobble(at),
  );
  const high = like.mean.map((_, at) =>
    Math.floor(at / ticks) === 5 && at % ticks >= 20 ? 0.8 + wobble(at) : 0.61 + wobble(at),
  );
  const mean = low.map((one, at) => (one + high[at]! + 6 * 0.605) / 8);
  return { fleet, grid: { ...like, metric: "gpu-sm-activity", mean, low, high } };
}

it("is the busiest GPU's lead over the machine's others, as a share of what is usual", () => {
  const { grid } = activity();
  const lead = busierThanSiblings([grid])!;
  const of = (m: number, t: number): number => lead.high[m * grid.ticks + t]!;
  expect(of(5, 20)).toBeCloseTo(0.195 / 0.605, 2);
  expect(of(4, 20)).toBeCloseTo(0.005 / 0.605, 2);
});

it("does not take a GPU whose exporter reads nothing for a lead of the others", () => {
  const { grid } = activity(0);
  expect(busierThanSiblings([grid])!.high[3 * grid.ticks + 20]).toBeCloseTo(0.005 / 0.605, 2);
});

it("needs siblings", () => {
  const { grid } = activity();
  const few = { ...grid, reporting: grid.reporting!.map(() => 2) };
  expect(Number.isNaN(busierThanSiblings([few])!.high[0]!)).toBe(true);
  expect(busierThanSiblings([{ ...grid, low: grid.mean, high: grid.mean }])).toBeNull();
});

it("accuses a GPU that works on while all others wait for it", () => {
  const { fleet, grid } = activity();
  const { faulty } = findMachines({ ...fleet, grids: [...fleet.grids, grid] });
  expect(faulty.map(({ machine }) => machine)).toEqual(["node005"]);
  expect(faulty[0]!.why).toMatch(/SM activity of one GPU/);
});
