import { describe, expect, it } from "vitest";
import type { Rank } from "../../model/ids.ts";
import type { Group } from "../../model/job.ts";
import type { TimeBreakdown } from "./time-breakdown.ts";
import { keptWaiting } from "./kept-waiting.ts";
import { ownTimeSuspects } from "./own-time.ts";

const TENSOR = "TENSOR_PARALLEL";
const PIPELINE = "PIPELINE_PARALLEL";

/** 32 ranks of one program, in tensor groups of four and in pairs of a pipeline. */
const groups = [
  ...Array.from({ length: 8 }, (_, g) =>
    groupOf(
      g,
      TENSOR,
      [0, 1, 2, 3].map((k) => 4 * g + k),
    ),
  ),
  ...Array.from({ length: 16 }, (_, g) => groupOf(8 + g, PIPELINE, [g, g + 16])),
  groupOf(24, "default", [...Array(32).keys()]),
];

function groupOf(id: number, role: string, ranks: number[]): Group {
  return { id, name: String(id), desc: role, role, ranks: ranks, carriesP2p: false };
}

interface Times {
  readonly own?: number;
  readonly tensor?: number;
  readonly recv?: number;
}

/** Six iterations of a second, all slow; ranks do as their peers where nothing else is said. */
function suspectsOf(odd: Readonly<Record<number, Times>>, without: readonly number[] = []): Rank[] {
  const accounts = new Map<Rank, TimeBreakdown>();
  for (const rank of [...Array(32).keys()].filter((one) => !without.includes(one))) {
    const { own = 600, tensor = 100, recv = 200 } = odd[rank] ?? {};
    const noisy = Float64Array.from({ length: 6 }, (_, i) => own + ((rank + i) % 5) - 2);
    accounts.set(rank, {
      iteration: Float64Array.from({ length: 6 }, (_, i) => 100 + i),
      totalMs: new Float64Array(6).fill(1000),
      ownMs: noisy,
      issueMs: new Float64Array(6).fill(5),
      insideMs: new Map([
        [TENSOR, tensor],
        [`${PIPELINE} recv`, recv],
      ]),
      program: 1,
    });
  }
  const found = ownTimeSuspects(accounts, keptWaiting(accounts, groups));
  return found.map(({ rank }) => rank);
}

describe("a rank with a long own time, slow since the record begins", () => {
  it("is accused", () => {
    expect(suspectsOf({ 5: { own: 800, tensor: 60 } })).toEqual([5]);
  });

  it("is spared where it waits for a member of its group, and its peers do not", () => {
    const waits = { own: 800, tensor: 300 };
    expect(suspectsOf({ 4: waits, 5: { tensor: 100, recv: 400 }, 6: waits, 7: waits })).toEqual([]);
  });

  it("is spared where its group waits for a member that left nothing", () => {
    const waits = { own: 800, tensor: 300 };
    expect(suspectsOf({ 4: waits, 6: waits, 7: waits }, [5])).toEqual([]);
  });

  it("is spared where it waits longer for what it receives", () => {
    expect(suspectsOf({ 5: { own: 800, recv: 400 } })).toEqual([]);
  });

  it("is accused where the whole group waits a little more for each other", () => {
    const slow = { own: 800, tensor: 130 };
    expect(suspectsOf({ 4: slow, 5: slow, 6: slow, 7: slow })).toEqual([4, 5, 6, 7]);
  });

  it("is accused, and whoever waits for it is not", () => {
    const waits = { own: 720, tensor: 280 };
    expect(suspectsOf({ 4: waits, 5: { own: 800, tensor: 60 }, 6: waits })).toEqual([5]);
  });
});
