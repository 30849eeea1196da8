import { describe, expect, test } from "vitest";
import type { PlacedJob } from "../../src/model/mitigation.ts";
import { makeMitigator, NO_TROUBLE, type Mitigator, type Order } from "./mitigator.ts";
import { badMachines, remediesOf } from "../../src/mitigate/remedies.ts";

/** Four replicas of two stages, a machine each: 8 · 10 + 10 ms of passes and 40 ms of exchange. */
const JOB: PlacedJob = {
  replicas: 4,
  stages: 2,
  microBatches: [8, 8, 8, 8],
  stageMs: [10, 10],
  gradientMs: [40, 40],
  activationMs: 0.1,
  restMs: 0,
  slots: Array.from({ length: 8 }, (_, i) => ({
    name: `n${i}`,
    machine: `n${i}`,
    compute: 1,
    network: 1,
  })),
  links: [],
};
const OVERHEADS = { microBatchesMs: 100, topologyMs: 2_000, restartMs: 1e9 };

/** Iterations of so long until something is ordered. */
function until(mitigator: Mitigator, iterationMs: number, most = 10_000): [number, Order] | null {
  for (let i = 1; i <= most; i++) {
    const order = mitigator.observe(iterationMs);
    if (order) return [i, order];
  }
  return null;
}

describe("living with faults", () => {
  test("a slow GPU: fewer micro-batches for its replica, and equal ones when it is over", () => {
    const mitigator = makeMitigator(JOB, { overheads: OVERHEADS });
    expect(mitigator.diagnosed({ ...NO_TROUBLE, compute: new Map([[1, 2]]) })).toBeNull();
    const [after, order] = until(mitigator, 220)!;
    expect(after).toBe(2);
    expect(order.strategy).toBe("S2");
    expect(order.microBatches.reduce((a, b) => a + b, 0)).toBe(32);
    expect(order.microBatches[1]).toBeLessThan(8);
    const back = mitigator.diagnosed(NO_TROUBLE);
    expect(back).toMatchObject({ strategy: "S2", microBatches: [8, 8, 8, 8], pauseMs: 0 });
  });

  test("a congested way in a gradient exchange: places are changed, and stay when it is over", () => {
    const mitigator = makeMitigator(JOB, { overheads: OVERHEADS });
    mitigator.diagnosed({ ...NO_TROUBLE, links: [{ a: 0, b: 1, factor: 5 }] });
    const [, order] = until(mitigator, 290)!;
    expect(order.strategy).toBe("S3");
    const place = (slot: number): number => order.slotAt.indexOf(slot);
    expect(Math.floor(place(0) / 4)).not.toBe(Math.floor(place(1) / 4));
    expect([...order.slotAt].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(mitigator.diagnosed(NO_TROUBLE)).toBeNull();
    expect(until(mitigator, 130, 200)).toBeNull();
  });

  test("compound: after the swap, a slow GPU is found at its new place", () => {
    const mitigator = makeMitigator(JOB, { overheads: OVERHEADS });
    const links = [{ a: 0, b: 1, factor: 5 }];
    mitigator.diagnosed({ ...NO_TROUBLE, links });
    const [, moved] = until(mitigator, 290)!;
    mitigator.diagnosed({ ...NO_TROUBLE, links, compute: new Map([[1, 2]]) });
    const [, order] = until(mitigator, 220)!;
    expect(order.strategy).toBe("S2");
    const replica = moved.slotAt.indexOf(1) % 4;
    const least = Math.min(...order.microBatches);
    expect(order.microBatches[replica]).toBe(least);
    expect(order.microBatches.filter((count) => count === least)).toHaveLength(1);
  });

  test("what lasts is restarted, without the machines at fault", () => {
    const mitigator = makeMitigator(JOB, { overheads: { ...OVERHEADS, restartMs: 50_000 } });
    const trouble = {
      ...NO_TROUBLE,
      compute: new Map([
        [1, 2],
        [6, 3],
      ]),
    };
    mitigator.diagnosed(trouble);
    const strategies: string[] = [];
    let exclude: readonly string[] = [];
    for (let i = 0; i < 3000 && exclude.length === 0; i++) {
      const order = mitigator.observe(220);
      if (!order) continue;
      strategies.push(order.strategy);
      exclude = order.exclude;
    }
    expect(strategies.at(-1)).toBe("S4");
    expect(exclude).toEqual(["n1", "n6"]);
  });

  test("where replicas must take equal counts and nobody may move, only a restart is left", () => {
    const slow = { ...JOB, slots: JOB.slots.map((s, i) => (i === 2 ? { ...s, compute: 2 } : s)) };
    const { plans } = remediesOf(slow, { mayBeUneven: false, maySwap: false });
    expect(plans.map(({ strategy }) => strategy)).toEqual(["S4"]);
  });

  test("a restart without spares goes on with a replica less, which the others' micro-batches pay for", () => {
    const slow = { ...JOB, slots: JOB.slots.map((s, i) => (i === 2 ? { ...s, compute: 2 } : s)) };
    const at = (spares: number): number =>
      remediesOf(slow, { spares }).plans.find(({ strategy }) => strategy === "S4")!.iterationMs;
    // 11 micro-batches instead of 8: 12 · 10 + 0.2 + 40 ms instead of 9 · 10 + 0.2 + 40.
    expect(at(0) / at(1)).toBeCloseTo(160.2 / 130.2, 9);
  });

  test("a slow NIC is not moved", () => {
    const slow = { ...JOB, slots: JOB.slots.map((s, i) => (i === 2 ? { ...s, network: 9 } : s)) };
    const { plans } = remediesOf(slow);
    expect(plans.map(({ strategy }) => strategy)).toEqual(["S2", "S4"]);
    expect(plans[0]!.microBatches!.allocation).toEqual([8, 8, 8, 8]);
  });

  test("after a restart counts are equal", () => {
    const mitigator = makeMitigator(JOB, { overheads: { ...OVERHEADS, restartMs: 3_000 } });
    mitigator.diagnosed({ ...NO_TROUBLE, compute: new Map([[1, 2]]) });
    expect(until(mitigator, 220)![1].strategy).toBe("S2");
    const [, restart] = until(mitigator, 220)!;
    expect(restart).toMatchObject({ strategy: "S4", microBatches: [8, 8, 8, 8] });
  });

  test("when it is over, nothing more is ordered, however noisy iterations are", () => {
    const mitigator = makeMitigator(JOB, { overheads: OVERHEADS });
    mitigator.diagnosed({ ...NO_TROUBLE, compute: new Map([[1, 2]]) });
    until(mitigator, 220);
    mitigator.diagnosed(NO_TROUBLE);
    expect(until(mitigator, 134, 2000)).toBeNull();
  });

  test("places that are slower for a healthy job are given back", () => {
    // A stage a machine, so that gradients pass NVLink as long as nobody moves.
    const slots = JOB.slots.slice(0, 4).map((slot, i) => ({ ...slot, machine: `m${i >> 1}` }));
    const job = { ...JOB, replicas: 2, microBatches: [8, 8], gradientMs: [100, 100], slots };
    const mitigator = makeMitigator(job, { overheads: { ...OVERHEADS, topologyMs: 500 } });
    mitigator.diagnosed({ ...NO_TROUBLE, links: [{ a: 0, b: 1, factor: 60 }] });
    const [, moved] = until(mitigator, 850)!;
    expect(moved.strategy).toBe("S3");
    expect([...moved.slotAt]).not.toEqual([0, 1, 2, 3]);
    mitigator.diagnosed(NO_TROUBLE);
    const [, back] = until(mitigator, 190)!;
    expect(back.strategy).toBe("S3");
    expect([...back.slotAt]).toEqual([0, 1, 2, 3]);
  });

  test("a fault that keeps changing is paid for all the same", () => {
    const mitigator = makeMitigator(JOB, { overheads: { ...OVERHEADS, restartMs: 60_000 } });
    const strategies = new Set<string>();
    for (let i = 0; i < 2000 && !strategies.has("S4"); i++) {
      if (i % 20 === 0)
        mitigator.diagnosed({ ...NO_TROUBLE, compute: new Map([[1, i % 40 === 0 ? 2 : 2.5]]) });
      const order = mitigator.observe(190);
      if (order) strategies.add(order.strategy);
    }
    expect(strategies).toContain("S4");
  });

  test("of links that meet in a machine that one is left out", () => {
    const links = [
      { a: 0, b: 3, factor: 4 },
      { a: 3, b: 5, factor: 4 },
      { a: 6, b: 3, factor: 4 },
    ];
    expect(badMachines({ ...JOB, links })).toEqual(["n3"]);
  });
});
