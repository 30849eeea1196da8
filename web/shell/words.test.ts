import { describe, expect, it } from "vitest";
import { durationWords, figure, percentWords, slowerWords, spanWords } from "./words.ts";

describe("words for numbers", () => {
  it("say durations in the unit that fits", () => {
    expect([0.4, 850, 12_440, 59_960, 185_000, 7_620_000, 273_600_000].map(durationWords)).toEqual([
      "0 ms",
      "850 ms",
      "12.4 s",
      "1 min 00 s",
      "3 min 05 s",
      "2 h 07 min",
      "3 d 4 h",
    ]);
    expect(durationWords(NaN)).toBe("–");
  });

  it("count seconds upwards from nothing, also where a clock is ahead", () => {
    expect([-5000, 0, 8200, 59_600].map(spanWords)).toEqual(["0 s", "0 s", "8 s", "1 min 00 s"]);
  });

  it("compare a pace with the healthy one only where both are known", () => {
    expect(slowerWords(1595, 609)).toBe("2.62× slower");
    expect(slowerWords(610, 609)).toBe("as usual");
    expect(slowerWords(50_000, 600)).toBe("83× slower");
    expect(slowerWords(null, 609)).toBe("");
    expect(slowerWords(609, 0)).toBe("");
  });

  it("never call anything certain that is not", () => {
    expect([0, 0.786, 0.999, 1].map(percentWords)).toEqual(["0 %", "79 %", "99 %", "100 %"]);
  });

  it("keep three digits that count", () => {
    expect([0, 0.0421, 1.249, 12.34, 99.96, 12_345.6].map(figure)).toEqual([
      "0.00",
      "0.042",
      "1.25",
      "12.3",
      "100",
      "12,346",
    ]);
  });
});
