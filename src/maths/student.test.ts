import { describe, expect, it } from "vitest";
import { studentQuantile, studentTail } from "./student.ts";

describe("Student's t", () => {
  it("agrees with printed tables", () => {
    expect(studentQuantile(0.05, 2)).toBeCloseTo(2.92, 3);
    expect(studentQuantile(0.025, 4)).toBeCloseTo(2.776, 3);
    expect(studentQuantile(0.005, 8)).toBeCloseTo(3.355, 3);
    expect(studentQuantile(0.0005, 10)).toBeCloseTo(4.587, 3);
  });

  it("gives back the probability far out in the tail", () => {
    for (const probability of [1e-4, 1e-6, 1e-9]) {
      const t = studentQuantile(probability, 8);
      expect(studentTail(t, 8) / probability).toBeCloseTo(1, 3);
    }
  });
});
