import { describe, expect, it } from "vitest";
import type { BeatReport } from "../../wire/messages.ts";
import { type Pace, StandstillDetector } from "./standstill-detector.ts";

const HANG_MS = 30_000;
const PAUSE_MS = 900_000;
/** Of a beat that counts at all times of a test. */
const FRESH = Infinity;

/** Before the level is known nothing is suspected. */
const paceOf = (longestMs: number): Pace => ({ levelMs: NaN, longestMs, pauseMs: 0 });
const STEADY: Pace = { levelMs: 1000, longestMs: 1100, pauseMs: 0 };

function beat(change: Partial<BeatReport["jobs"][number]> = {}): BeatReport["jobs"][number] {
  const base = { job: "j", run: "r", alive: 8, stopped: [], gone: [], silentMs: 0 };
  return { ...base, openOperators: 0, lastIteration: 7, ...change };
}

describe("StandstillDetector", () => {
  it("is patient with a job whose agents see no open operators: it may save a checkpoint", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat(), FRESH);
    expect(watch.look(5 * HANG_MS, paceOf(1000))).toBeNull();
    expect(watch.look(11 * HANG_MS, paceOf(1000))).toMatchObject({ kind: "hang" });
  });

  it("calls silence with open operators a hang, once, and takes it back when iterations end again", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 20_000, openOperators: 4 }), FRESH);
    expect(watch.look(HANG_MS - 1, paceOf(1000))).toBeNull();
    expect(watch.look(HANG_MS, paceOf(1000))).toMatchObject({ kind: "hang", sinceMs: 0 });
    expect(watch.look(2 * HANG_MS, paceOf(1000))).toBeNull();
    expect(watch.goesOn(1)).toBe(false);
    expect(watch.goesOn(1)).toBe(true);
  });

  it("comes to a job that stands still already: beats tell since when", () => {
    const found = (change: Partial<BeatReport["jobs"][number]>, atMs: number, pace = STEADY) => {
      const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
      watch.heard("a", beat({ silentMs: 60_000, openOperators: 4, ...change }), 100_000);
      watch.heard("b", beat({ silentMs: 80_000, openOperators: 4, ...change }), 100_000);
      return watch.look(atMs, pace);
    };
    expect(found({}, 100_000)).toMatchObject({ kind: "hang", sinceMs: 40_000, isSuspicion: false });
    // It may be in its first iteration, or have iterations of minutes.
    expect(found({ lastIteration: -1 }, 100_000)).toBeNull();
    expect(found({}, 100_000, paceOf(0))).toBeNull();
    expect(found({ silentMs: 0 }, 100_000)).toBeNull();
  });

  it("does not count time in which the service was too busy to listen", () => {
    const silent = (busyMs: number): unknown => {
      const watch = new StandstillDetector({ hangMs: 10_000, pauseMs: PAUSE_MS });
      watch.moved(0);
      watch.heard("a", beat({ silentMs: 1, openOperators: 4 }), 0);
      watch.shift(busyMs);
      return watch.look(12_000, paceOf(1000));
    };
    expect(silent(0)).toMatchObject({ kind: "hang" });
    expect(silent(11_000)).toBeNull();
  });

  it("waits three of the longest iterations", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 1, openOperators: 4 }), FRESH);
    expect(watch.look(100_000, paceOf(40_000))).toBeNull();
    expect(watch.look(120_000, paceOf(40_000))).not.toBeNull();
  });

  it("has little patience with a stopped process, and names it", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ stopped: [3] }), FRESH);
    expect(watch.look(6_000, paceOf(1000))).toMatchObject({ kind: "hang", ranks: [3] });
  });

  it("takes a failure in a log for a crash soon where ranks wait, later where none does, and not while a phase is named", () => {
    const crashed = (change: Partial<BeatReport["jobs"][number]>, atMs: number): unknown => {
      const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
      watch.moved(0);
      watch.failed([3], "rank 3: ConnectionError");
      watch.heard("a", beat(change), FRESH);
      return watch.look(atMs, paceOf(1000))?.kind;
    };
    expect(crashed({ silentMs: 5000, openOperators: 4 }, 6000)).toBe("crash");
    expect(crashed({}, 6000)).toBeUndefined();
    expect(crashed({}, HANG_MS)).toBe("crash");
    const pause = 'rank 3 is in its phase "checkpoint"';
    expect(crashed({ pause, silentMs: 5000, openOperators: 4 }, 10 * HANG_MS)).toBeUndefined();
    expect(crashed({ pause }, PAUSE_MS)).toBe("crash");
  });

  it("collects the deaths of a moment into one crash", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.lost([3], "rank 3 is gone", 1000);
    watch.lost([4, 5], "more", 1500);
    expect(watch.look(2000, paceOf(1000))).toBeNull();
    expect(watch.look(3000, paceOf(1000))).toMatchObject({
      kind: "crash",
      ranks: [3, 4, 5],
      sinceMs: 1000,
    });
  });

  it("is silent where no agent is left to tell", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 20_000, openOperators: 4 }), FRESH);
    watch.forget("a");
    expect(watch.look(100 * HANG_MS, paceOf(1000))).toBeNull();
  });

  it("suspects a job after four of its iterations, and again after twice as long", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 4000, openOperators: 4 }), FRESH);
    expect(watch.look(3900, STEADY)).toBeNull();
    expect(watch.look(4000, STEADY)).toMatchObject({ isSuspicion: true, sinceMs: 0 });
    expect(watch.look(7000, STEADY)).toBeNull();
    watch.heard("a", beat({ silentMs: 9000, openOperators: 4 }), FRESH);
    expect(watch.look(8000, STEADY)).toMatchObject({ isSuspicion: true });
    expect(watch.look(HANG_MS, STEADY)).toMatchObject({ isSuspicion: false });
  });

  it("waits for several iterations of a slow job", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    const slow: Pace = { levelMs: 12_000, longestMs: 13_000, pauseMs: 0 };
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 50_000, openOperators: 4 }), FRESH);
    expect(watch.look(38_000, slow)).toBeNull();
    expect(watch.look(39_000, slow)).toMatchObject({ isSuspicion: false });
  });

  it("suspects nobody while operators move on a machine, or none is open", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 6000, openOperators: 4 }), FRESH);
    watch.heard("b", beat({ silentMs: 100, openOperators: 4 }), FRESH);
    expect(watch.look(7000, STEADY)).toBeNull();
    watch.heard("b", beat({ silentMs: 0, openOperators: 0 }), FRESH);
    expect(watch.look(7000, STEADY)).toMatchObject({ isSuspicion: true });
  });

  it("expects a pause that the job takes at this iteration", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    const due: Pace = { ...STEADY, pauseMs: 60_000 };
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 85_000, openOperators: 4 }), FRESH);
    expect(watch.look(89_000, due)).toBeNull();
    expect(watch.look(90_000, due)).toMatchObject({ isSuspicion: false });
  });

  it.each([
    ["a phase that the job named", 'rank 0 is in its phase "checkpoint"', null],
    ["a stack in torch.save", undefined, "rank 0: checkpoint (torch/serialization.py:9 save)"],
  ])("is silent during %s, up to a limit", (_, pause, explained) => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    const saved = pause === undefined ? {} : { pause };
    watch.heard("a", beat({ silentMs: 4000, openOperators: 4, ...saved }), FRESH);
    if (explained !== null) watch.explain(explained);
    for (let nowMs = 5000; nowMs < PAUSE_MS; nowMs += 5000)
      expect(watch.look(nowMs, STEADY)).toBeNull();
    expect(watch.look(PAUSE_MS, STEADY)).toMatchObject({ kind: "hang" });
  });

  it("believes beats for a while only: agents that are late say nothing of the job", () => {
    const watch = new StandstillDetector({ hangMs: HANG_MS, pauseMs: PAUSE_MS });
    watch.moved(0);
    watch.heard("a", beat({ silentMs: 4000, openOperators: 4 }), 4000);
    expect(watch.look(20_000, STEADY)).toBeNull();
    expect(watch.look(100 * HANG_MS, STEADY)).toBeNull();
  });
});
