import { afterEach, describe, expect, it } from "vitest";
import { moment, seconds } from "./duration.ts";

describe("a duration", () => {
  it.each([
    ["90s", 90],
    ["15m", 900],
    ["1h30m", 5400],
    ["1.5h", 5400],
    ["250ms", 0.25],
    ["2d", 172_800],
    ["240", 240],
  ])("%s is so many seconds", (text, expected) => expect(seconds(text)).toBe(expected));

  it.each(["", "0", "0s", "-5m", "5 m", "5x", "m", "1h-30m"])("%s is none", (text) =>
    expect(() => seconds(text)).toThrow("must be a duration"),
  );
});

describe("a moment", () => {
  const before = process.env["TZ"];
  afterEach(() => {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  });

  it.each(["UTC", "Asia/Kolkata", "America/St_Johns"])("is the same in the zone %s", (zone) => {
    process.env["TZ"] = zone;
    const expected = Date.UTC(2026, 10, 15, 0, 41) / 1000;
    for (const text of [
      "2026-11-15T00:41:00Z",
      "2026-11-15T00:41:00",
      "2026-11-15 00:41",
      "2026-11-15T06:11:00+05:30",
      String(expected),
    ])
      expect(moment(text), text).toBe(expected);
    expect(moment("2026-11-15")).toBe(expected - 41 * 60);
  });

  it.each(["now", "", "15 Nov 2026 00:41", "2026-13-01", "2026-11-15T25:00Z"])(
    "%s is refused, not guessed",
    (text) => expect(() => moment(text)).toThrow("must be a time"),
  );
});
