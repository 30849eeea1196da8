/** A search of a stretch that lasts does not say that it is over. */
import { expect, it } from "vitest";
import type { SlowRank } from "../model/facts.ts";
import type { Finding } from "../model/finding.ts";
import { stillSlow } from "./still-slow.ts";

/** Three slow iterations of one rank look like three spikes, which end with the last one. */
function spikes(iteration: number, until: number): Finding<SlowRank> {
  const to = "2026-11-18T23:08:30.000Z";
  return {
    id: "f1",
    method: "localize/slow-rank",
    says: "rank 3's own time jumps",
    weight: 0.97,
    at: [],
    data: {
      fact: "slow-rank",
      slowDown: true,
      iteration,
      until,
      from: null,
      to,
      growthMs: 459,
    },
    accuses: [],
    clears: [],
  };
}

it("leaves the end open of what is slow since the stretch began, and no other", () => {
  const [now, earlier] = stillSlow([spikes(88, 90), spikes(40, 60)], 88);
  expect(now!.data).toMatchObject({ iteration: 88, until: null, to: null });
  expect(earlier!.data).toMatchObject({ iteration: 40, until: 60 });
});
