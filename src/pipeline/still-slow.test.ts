/** A search of a stretch that lasts does not say that it is over. */
import { expect, it } from "vitest";
import type { Finding } from "../model/finding.ts";
import { stillSlow } from "./still-slow.ts";

/** Three slow iterations of one rank look like three spikes, which end with the last one. */
function spikes(iteration: number, until: number): Finding {
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
    accuses: [
      {
        kind: "fail-slow",
        type: "rank",
        ranks: [3],
        link: null,
        cause: "gpu-slow",
        weight: 0.97,
        why: "",
      },
    ],
    clears: [],
  };
}

const FROM = "2026-11-18T23:08:00.000Z";
const stretch = { slowFrom: 88, from: FROM, comparedFrom: 88, accused: new Set<number>() };

it("leaves the end open of what is slow since the stretch began, and no other", () => {
  const [now, earlier] = stillSlow([spikes(88, 90), spikes(40, 60)], stretch);
  expect(now!.data).toMatchObject({ iteration: 88, until: null, to: null });
  expect(earlier!.data).toMatchObject({ iteration: 40, until: 60 });
});

it("keeps since when somebody known is slow where later iterations are compared, and dates nobody else back", () => {
  const dated = (iteration: number, accused: number[]): unknown =>
    stillSlow([spikes(iteration, 310)], {
      ...stretch,
      comparedFrom: 300,
      accused: new Set(accused),
    })[0]!.data;
  expect(dated(300, [3])).toMatchObject({ iteration: 88, from: FROM });
  // Since then it is slower once more; and who came to the one that is known did so later.
  expect(dated(306, [3])).toMatchObject({ iteration: 306 });
  expect(dated(300, [5])).toMatchObject({ iteration: 300 });
});
