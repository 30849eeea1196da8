import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seeded } from "../base/random.ts";
import { autocorrelation, fft } from "./fft.ts";

describe("fft", () => {
  it("agrees with the sum that defines it", () => {
    const random = seeded(1);
    for (const n of [1, 2, 4, 8, 64, 256]) {
      const re = Float64Array.from({ length: n }, () => random() - 0.5);
      const im = Float64Array.from({ length: n }, () => random() - 0.5);
      const wanted = Array.from({ length: n }, (_, k) => {
        let [r, m] = [0, 0];
        for (let t = 0; t < n; t++) {
          const turn = (-2 * Math.PI * k * t) / n;
          r += re[t]! * Math.cos(turn) - im[t]! * Math.sin(turn);
          m += re[t]! * Math.sin(turn) + im[t]! * Math.cos(turn);
        }
        return [r, m] as const;
      });
      fft(re, im);
      wanted.forEach(([r, m], k) => {
        expect(re[k]).toBeCloseTo(r, 9);
        expect(im[k]).toBeCloseTo(m, 9);
      });
    }
  });

  it("is its own inverse with the columns swapped", () => {
    const re = Float64Array.from({ length: 32 }, (_, i) => Math.sin(i * i));
    const im = new Float64Array(32);
    const before = re.slice();
    fft(re, im);
    fft(im, re);
    before.forEach((value, i) => expect(re[i]! / 32).toBeCloseTo(value, 12));
  });

  it("refuses sizes that are no power of two", () => {
    expect(() => fft(new Float64Array(12), new Float64Array(12))).toThrow(/power of two/);
  });
});

describe("autocorrelation", () => {
  it("agrees with the products, divided by the energy of the values that overlap", () => {
    const values = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(values, fc.nat(100), (list, maxLag) => {
        const n = list.length;
        const mean = list.reduce((sum, value) => sum + value, 0) / n;
        const x = list.map((value) => value - mean);
        const acf = autocorrelation(Float64Array.from(list), maxLag);
        expect(acf.length).toBe(Math.min(maxLag, n - 1) + 1);
        acf.forEach((value, lag) => {
          let [product, left, right] = [0, 0, 0];
          for (let i = 0; i + lag < n; i++) {
            product += x[i]! * x[i + lag]!;
            left += x[i]! ** 2;
            right += x[i + lag]! ** 2;
          }
          if (left * right > 1e-6) expect(value).toBeCloseTo(product / Math.sqrt(left * right), 6);
        });
      }),
      { numRuns: 200, seed: 1 },
    );
  });

  it("reaches 1 at a period of a third of the window, which the paper's division cannot", () => {
    const random = seeded(3);
    const pattern = Array.from({ length: 50 }, () => random());
    const acf = autocorrelation(
      Float64Array.from({ length: 150 }, (_, i) => pattern[i % 50]!),
      50,
    );
    expect(acf[50]).toBeCloseTo(1, 9);
  });

  it("calls values that never differ repeating", () => {
    expect([...autocorrelation(new Float64Array(5).fill(7), 3)]).toEqual([1, 1, 1, 1]);
    expect(autocorrelation(new Float64Array(0), 3).length).toBe(1);
  });
});
