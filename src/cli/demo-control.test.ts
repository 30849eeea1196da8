import { describe, expect, it } from "vitest";
import type { JobView } from "../live/service/view.ts";
import { simulate } from "../simulate/cluster/engine.ts";
import { DemoJob } from "./demo-control.ts";
import { DEMO, type DemoOrder, demoSpec } from "./demo-play.ts";
import type { DemoPlayer } from "./demo-player.ts";

const HEALTHY = {
  run: "a1",
  lastIteration: 30,
  baselineMs: 500,
  health: "healthy",
} as const satisfies Partial<JobView>;

function demoOf(seen: Partial<JobView> | null): { demo: DemoJob; orders: DemoOrder[] } {
  const orders: DemoOrder[] = [];
  const demo = new DemoJob({
    job: DEMO.job,
    simulation: simulate(demoSpec()),
    nowMs: () => 1000,
    random: () => 0.5,
    onChange: () => undefined,
  });
  const player: DemoPlayer = {
    news: { run: "a1", iteration: 31, isHung: false, restarts: 0 },
    order: (order) => void orders.push(order),
    restart: async () => undefined,
    close: async () => undefined,
  };
  demo.attach(player, { job: () => seen as JobView | null });
  return { demo, orders };
}

describe("the job of the demonstration", () => {
  it("is broken when the service can notice, and once", () => {
    const { demo, orders } = demoOf(HEALTHY);
    expect(demo.state().isReady).toBe(true);
    expect(demo.breakIt({ kind: "gpu" })).toMatchObject({ isReady: false, faults: [{ id: 1 }] });
    expect(() => demo.breakIt({ kind: "gpu" })).toThrow("is looking for the first fault");
    expect(orders).toHaveLength(1);
  });

  it("takes a second fault when the first is found, elsewhere, and no third", () => {
    const seen: { -readonly [K in keyof typeof HEALTHY]: (typeof HEALTHY)[K] | string | number } = {
      ...HEALTHY,
    };
    const { demo, orders } = demoOf(seen as Partial<JobView>);
    demo.breakIt({ kind: "gpu", rank: 17 });
    Object.assign(seen, { health: "slow", lastIteration: 41 });
    expect(demo.state().isReady).toBe(true);
    expect(() => demo.breakIt({ kind: "nic", rank: 17 })).toThrow("this is broken already");
    const { faults, isReady } = demo.breakIt({ kind: "nic", rank: 40 });
    expect(faults.map(({ kind, ranks }) => [kind, ranks])).toEqual([
      ["gpu", [17]],
      ["nic", [40]],
    ]);
    expect(isReady).toBe(false);
    expect(() => demo.breakIt({ kind: "gpu" })).toThrow("two things are broken already");
    expect(orders).toHaveLength(2);
    expect(demo.mend().faults).toEqual([]);
    expect(orders).toHaveLength(4);
  });

  it.each([
    [null, "the service has not seen the job yet"],
    [{ ...HEALTHY, run: "b2" }, "the service has not seen the job yet"],
    [{ ...HEALTHY, baselineMs: null }, "the service is still learning what is normal"],
    [{ ...HEALTHY, health: "learning" }, "the service is still learning what is normal"],
    [{ ...HEALTHY, health: "slow" }, "the job is still recovering"],
    [{ ...HEALTHY, lastIteration: 8 }, "the job is still recovering"],
  ] as const)("is not broken before: %j", (seen, why) => {
    const { demo, orders } = demoOf(seen);
    expect(demo.state().isReady).toBe(false);
    expect(() => demo.breakIt({ kind: "gpu" })).toThrow(why);
    expect(orders).toEqual([]);
  });

  it("is not broken again right after it was mended", () => {
    const { demo } = demoOf(HEALTHY);
    demo.breakIt({ kind: "gpu" });
    demo.mend();
    expect(() => demo.breakIt({ kind: "gpu" })).toThrow("the job is still recovering");
  });
});
