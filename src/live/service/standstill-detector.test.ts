import { describe, expect, it } from "vitest";
import type { BeatReport } from "../wire/messages.ts";
import { StandstillDetector } from "./standstill-detector.ts";

const HANG_MS = 30_000;

function beat(change: Partial<BeatReport["jobs"][number]> = {}): BeatReport["jobs"][number] {
  const base = { job: "j", run: "r", alive: 8, stopped: [], gone: [], silentMs: 0 };
  return { ...base, openOperators: 0, lastIteration: 7, ...change };
}

describe("StandstillDetector", () => {
  it("is patient with a job whose agents see no open operators: it may save a checkpoint", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.moved(0);
    watch.heard("a", beat());
    expect(watch.look(5 * HANG_MS, 1000)).toBeNull();
    expect(watch.look(11 * HANG_MS, 1000)).toMatchObject({ kind: "hang" });
  });

  it("calls silence with open operators a hang, once, and takes it back when iterations end again", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 20_000, openOperators: 4 }));
    expect(watch.look(HANG_MS - 1, 1000)).toBeNull();
    expect(watch.look(HANG_MS, 1000)).toMatchObject({ kind: "hang", sinceMs: 0 });
    expect(watch.look(2 * HANG_MS, 1000)).toBeNull();
    expect(watch.goesOn(1)).toBe(false);
    expect(watch.goesOn(1)).toBe(true);
  });

  it("waits three of the longest iterations", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 1, openOperators: 4 }));
    expect(watch.look(100_000, 40_000)).toBeNull();
    expect(watch.look(120_000, 40_000)).not.toBeNull();
  });

  it("has little patience with a stopped process, and names it", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.moved(0);
    watch.heard("a", beat({ stopped: [3] }));
    expect(watch.look(6_000, 1000)).toMatchObject({ kind: "hang", ranks: [3] });
  });

  it("collects the deaths of a moment into one crash", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.lost([3], "rank 3 is gone", 1000);
    watch.lost([4, 5], "more", 1500);
    expect(watch.look(2000, 1000)).toBeNull();
    expect(watch.look(3000, 1000)).toMatchObject({
      kind: "crash",
      ranks: [3, 4, 5],
      sinceMs: 1000,
    });
  });

  it("is silent where no agent is left to tell", () => {
    const watch = new StandstillDetector(HANG_MS);
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 20_000, openOperators: 4 }));
    watch.forget("a");
    expect(watch.look(100 * HANG_MS, 1000)).toBeNull();
  });
});
