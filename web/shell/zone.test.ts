import { describe, expect, it } from "vitest";
import { clockWords, exactWords, timeWords } from "./zone.ts";

const NOW = Date.UTC(2026, 10, 16, 14, 3, 5);

describe("moments in UTC", () => {
  it("are the clock today, the day on other days, the year in other years", () => {
    expect(timeWords(NOW - 3_600_000, "utc", NOW)).toBe("13:03:05 UTC");
    expect(timeWords(NOW - 86_400_000, "utc", NOW)).toBe("15 Nov 14:03 UTC");
    expect(timeWords(NOW - 400 * 86_400_000, "utc", NOW)).toBe("12 Oct 2025");
  });

  it("are a dash where no calendar has them", () => {
    for (const ms of [NaN, Infinity, 1e300]) {
      expect(timeWords(ms, "utc", NOW)).toBe("–");
      expect(clockWords(ms, "local")).toBe("–");
      expect(exactWords(ms)).toBe("not known");
    }
  });
});

describe("a title", () => {
  it("says both zones to the millisecond", () => {
    expect(exactWords(NOW + 7)).toMatch(/UTC[+−]\d.* · 2026-11-16 14:03:05\.007 UTC$/);
  });
});
