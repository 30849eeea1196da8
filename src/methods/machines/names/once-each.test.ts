import { expect, it } from "vitest";
import type { MetricSamples } from "../../../model/metrics.ts";
import { onceEach } from "./once-each.ts";

function samples(device: readonly string[], rows: readonly (readonly number[])[]): MetricSamples {
  const start = new Uint32Array(rows.length + 1);
  rows.forEach((row, s) => (start[s + 1] = start[s]! + row.length));
  const timeS = Float64Array.from(rows.flat());
  const machine = new Int32Array(rows.length);
  return {
    name: "x",
    type: "gauge",
    machine,
    device,
    start,
    timeS,
    value: timeS.map((t) => 10 * t),
  };
}

it("makes one series of an exporter that came back under another name", () => {
  const before = samples(["gpu0"], [[1, 2]]);
  const after = samples(["gpu0"], [[3, 4, 5]]);
  const machine = Int32Array.of(7);
  const [one, ...others] = onceEach([
    { samples: after, machine },
    { samples: before, machine },
  ]);
  expect(others).toEqual([]);
  expect([...one!.machine]).toEqual([7]);
  expect([...one!.samples.value]).toEqual([10, 20, 30, 40, 50]);
});

it("keeps the longer of two that tell the same time, and leaves alone what comes once", () => {
  const long = samples(["gpu0", "gpu1"], [[1, 2, 3], [1]]);
  const short = samples(["gpu0"], [[2, 3]]);
  const placed = onceEach([
    { samples: long, machine: Int32Array.of(0, 0) },
    { samples: short, machine: Int32Array.of(0) },
  ]);
  expect([...placed[0]!.samples.timeS]).toEqual([1, 2, 3, 1]);
  const once = [{ samples: long, machine: Int32Array.of(0, 0) }];
  expect(onceEach(once)).toBe(once);
});
