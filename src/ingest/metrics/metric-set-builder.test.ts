import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MetricSetBuilder } from "./metric-set-builder.ts";

const NAME = "DCGM_FI_DEV_GPU_UTIL";

describe("MetricSetBuilder", () => {
  it("gives every series' samples in the order of time, whatever order they come in", () => {
    const sample = fc.record({
      series: fc.nat(5),
      timeS: fc.nat(40),
      value: fc.oneof(fc.integer({ min: -9, max: 9 }), fc.constantFrom(NaN, Infinity, 2e14)),
    });
    const batches = fc.array(fc.tuple(fc.boolean(), fc.array(sample, { maxLength: 80 })));
    fc.assert(
      fc.property(batches, (batches) => {
        const builder = new MetricSetBuilder();
        const names = [NAME, "node_x"];
        const ids = Array.from({ length: 6 }, (_, s) =>
          builder.series(names[s % 2]!, `node${9 - s}`, "gpu0"),
        );
        const expected = ids.map(() => new Map<number, number>());
        let repeated = 0;
        for (const [isBulk, samples] of batches) {
          for (const { series, timeS, value } of samples) {
            if (!isBulk) builder.add(ids[series]!, timeS, value);
          }
          if (isBulk) {
            for (const id of ids) {
              const own = samples.filter(({ series }) => series === id);
              const times = Float64Array.from(own, ({ timeS }) => timeS);
              builder.addMany(
                id,
                times,
                Float64Array.from(own, ({ value }) => value),
                own.length,
              );
            }
          }
          for (const { series, timeS, value } of samples) {
            const isBlank = value === 2e14 && series % 2 === 0;
            if (!Number.isFinite(value) || isBlank) continue;
            if (expected[series]!.has(timeS)) repeated++;
            else expected[series]!.set(timeS, value);
          }
        }
        const set = builder.finish();
        expect(builder.counts.repeated).toBe(repeated);
        expect(builder.counts.duplicateSeries).toBe(0);
        for (const { name, machine, start, timeS, value } of set.samples) {
          machine.forEach((m, k) => {
            const series = 9 - Number(set.machines[m]!.slice(4));
            expect(name).toBe(names[series % 2]);
            const held = [...expected[series]!].sort(([a], [b]) => a - b);
            expected[series]!.clear();
            expect([...timeS.subarray(start[k], start[k + 1])]).toEqual(held.map(([t]) => t));
            expect([...value.subarray(start[k], start[k + 1])]).toEqual(held.map(([, v]) => v));
          });
        }
        expect(expected.every((left) => left.size === 0)).toBe(true);
      }),
    );
  });

  it("joins a device's series that follow each other and leaves out those that overlap", () => {
    const builder = new MetricSetBuilder();
    const fill = (from: number, to: number, value: number): void => {
      const id = builder.series(NAME, "a", "gpu0");
      for (let t = from; t < to; t++) builder.add(id, t, value);
    };
    fill(50, 70, 2);
    fill(0, 40, 1);
    fill(30, 45, 3);
    const { samples } = builder.finish();
    expect(samples[0]!.timeS.length).toBe(60);
    expect([samples[0]!.value[39], samples[0]!.value[40]]).toEqual([1, 2]);
    expect(builder.counts.duplicateSeries).toBe(1);
  });

  it("holds runs longer than a block", () => {
    const builder = new MetricSetBuilder();
    const times = Float64Array.from({ length: 200_000 }, (_, i) => i);
    builder.addMany(builder.series(NAME, "a", "gpu0"), times, times, 200_000);
    builder.addMany(builder.series(NAME, "a", "gpu1"), times, times, 199_999);
    const { start, timeS } = builder.finish().samples[0]!;
    expect([...start]).toEqual([0, 200_000, 399_999]);
    expect([timeS[65_536], timeS[199_999], timeS[200_000], timeS[399_998]]).toEqual([
      65_536, 199_999, 0, 199_998,
    ]);
  });

  it("leaves out a metric that is dropped", () => {
    const builder = new MetricSetBuilder();
    builder.add(builder.series(NAME, "a", ""), 1, 2);
    builder.add(builder.series("node_x", "a", ""), 1, 2);
    builder.drop(NAME);
    expect(builder.finish().samples.map(({ name }) => name)).toEqual(["node_x"]);
  });
});
