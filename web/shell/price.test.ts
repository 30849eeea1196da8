import { describe, expect, it } from "vitest";
import { moneyWords, PRESET, readPrice, wasteOf } from "./price.ts";

const HOUR_MS = 3_600_000;

describe("the worth of lost time", () => {
  it("is GPU-hours at the price of one", () => {
    expect(wasteOf(12.52 * HOUR_MS, PRESET)).toEqual({ hours: "12.5 GPU-hours", money: "$31.30" });
    const francs = { currency: "CHF", perGpuHour: 3 };
    expect(wasteOf(HOUR_MS, francs)).toEqual({ hours: "1.00 GPU-hour", money: "3.00 CHF" });
    expect(wasteOf(0, PRESET)).toEqual({ hours: "0.00 GPU-hours", money: "$0.00" });
  });

  it("is rounded where it is much", () => {
    expect(moneyWords(1234.5, "€")).toBe("€1,235");
    expect(moneyWords(1_234_000, "$")).toBe("$1.23 million");
    expect(moneyWords(5, "")).toBe("5.00");
  });

  it("does not trust what was kept in the browser", () => {
    for (const text of ["", "{}", "null", '{"currency":"$","perGpuHour":"1"}'])
      expect(readPrice(text)).toBeNull();
    expect(readPrice('{"currency":"$","perGpuHour":-1}')).toBeNull();
    expect(readPrice(`{"currency":"${"x".repeat(999)}","perGpuHour":1}`)).toEqual({
      currency: "xxxx",
      perGpuHour: 1,
    });
  });
});
