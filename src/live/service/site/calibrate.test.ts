import { describe, expect, it } from "vitest";
import { judged } from "../../../../test/support/live/judged.ts";
import { testVerdict } from "../../../../test/support/live/incident.ts";
import { calibrated, correctedConfidence } from "./calibrate.ts";

/** `right` of `of` verdicts that said `confidence`. */
const list = (right: number, of: number, confidence: number, kind: "hang" | "crash" = "hang") =>
  Array.from({ length: of }, (_, i) => judged(i < right, { confidence, kind }));
const said = (right: number, of: number, stated: number) =>
  Array.from({ length: of }, (_, i) => ({ isRight: i < right, stated }));

describe("the confidence of verdicts", () => {
  it("stays as it is until enough verdicts of the kind were judged", () => {
    const verdict = testVerdict({ confidence: 0.9 });
    expect(calibrated(verdict, list(3, 19, 0.9))).toBe(verdict);
    expect(calibrated(verdict, [...list(3, 19, 0.9), ...list(0, 50, 0.9, "crash")])).toBe(verdict);
    const nobody = testVerdict({ confidence: 0.9, suspects: [] });
    expect(calibrated(nobody, list(3, 40, 0.9))).toBe(nobody);
  });

  it("is corrected by as many imagined judgements as said, and the verdict says so", () => {
    const verdict = calibrated(testVerdict({ confidence: 0.9 }), list(21, 34, 0.9));
    expect(verdict.confidence).toBeCloseTo((21 + 20 * 0.9) / (34 + 20), 3);
    expect(verdict.findings.at(-1)).toMatchObject({
      id: "f1",
      method: "site/judged",
      data: { fact: "site-judged", judged: 34, right: 21, stated: 0.9 },
    });
    expect(verdict.findings.at(-1)!.says).toContain(
      "of 34 verdicts of this kind judged here, 21 were right",
    );
  });

  it("is corrected once: a verdict that comes again starts from what was stated", () => {
    const once = calibrated(testVerdict({ confidence: 0.9 }), list(10, 40, 0.9));
    const twice = calibrated(once, list(10, 40, 0.9));
    expect(twice).toEqual(once);
  });

  it("rises with what was said, whatever people judged, and is never above 0.99", () => {
    // The surest were the least often right.
    const odd = [...said(15, 15, 0.6), ...said(9, 12, 0.8), ...said(2, 30, 0.97)];
    let last = 0;
    for (let c = 0; c <= 100; c++) {
      const now = correctedConfidence(c / 100, odd);
      expect(now).toBeGreaterThanOrEqual(last);
      expect(now).toBeLessThanOrEqual(0.99);
      last = now;
    }
    expect(correctedConfidence(0.97, odd)).toBeLessThan(0.7);
    expect(correctedConfidence(0.98, said(500, 500, 0.98))).toBe(0.99);
    expect(correctedConfidence(0.6, said(40, 40, 0.6))).toBeCloseTo((40 + 12) / 60);
  });
});
