import { describe, expect, it } from "vitest";
import { jobOf, pointsOf } from "../../../../test/support/live/messages.ts";
import { AgentClocks } from "./agent-clocks.ts";

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;

const points = (...endMs: number[]) => ({
  ...pointsOf(endMs.length),
  endMs: Float64Array.from(endMs),
});

describe("AgentClocks", () => {
  it.each([MINUTE, HOUR])(
    "corrects a clock that is %i ms ahead from its first beat on",
    (offMs) => {
      const clocks = new AgentClocks();
      expect(clocks.heard("a", NOW + offMs, NOW)).toMatch(/^the clock of a is .* ahead/);
      expect(clocks.heard("a", NOW + 2000 + offMs, NOW + 2000)).toBeNull();
      const { endMs } = clocks.corrected("a", points(NOW + offMs - 5), NOW);
      expect([...endMs]).toEqual([NOW - 5]);
      expect(clocks.corrected("a", jobOf("j", [0]), NOW).startedMs).toBeLessThanOrEqual(NOW);
      expect(clocks.words(["a", "b"])).toMatch(/a .* ahead/);
    },
  );

  it.each([MINUTE, HOUR])(
    "corrects a clock that is %i ms behind when three beats agree",
    (offMs) => {
      const clocks = new AgentClocks();
      const said = [0, 2000, 4000].map((ms) => clocks.heard("a", NOW + ms - offMs, NOW + ms));
      expect(said).toEqual([null, null, expect.stringMatching(/behind/)]);
      const { endMs } = clocks.corrected("a", points(NOW - offMs), NOW + 4000);
      expect([...endMs]).toEqual([NOW]);
    },
  );

  it("takes late reports for late, not for a clock that is behind", () => {
    const clocks = new AgentClocks();
    for (const lateMs of [60_000, 40_000, 20_000, 0])
      expect(clocks.heard("a", NOW - lateMs, NOW)).toBeNull();
    const { endMs } = clocks.corrected("a", points(NOW - 60_000), NOW);
    expect([...endMs]).toEqual([NOW - 60_000]);
  });

  it("lets nothing end in the future when a clock was set since the last beat", () => {
    const clocks = new AgentClocks();
    clocks.heard("a", NOW, NOW);
    const { endMs } = clocks.corrected("a", points(NOW + HOUR - 1000, NOW + HOUR), NOW);
    expect([...endMs]).toEqual([NOW - 1000, NOW]);
  });

  it("leaves a second alone, and says when a clock is right again", () => {
    const clocks = new AgentClocks();
    expect(clocks.heard("a", NOW + 1000, NOW)).toBeNull();
    const report = points(NOW + 1000);
    expect(clocks.corrected("a", report, NOW)).toBe(report);
    clocks.heard("a", NOW + HOUR, NOW);
    expect(clocks.heard("a", NOW, NOW)).toMatch(/right again/);
    expect(clocks.words(["a"])).toBeNull();
  });
});
