/** Small fleets for tests: machines that go up and down together, with their own noise, and whatever is done to them. */
import { seeded } from "../../../src/base/random.ts";
import { gaussian } from "../noise.ts";
import type { Fleet, MetricGrid } from "../../../src/model/fleet.ts";

/** Level, swing of the iterations and noise, in the metric's unit. */
const KINDS: Readonly<Record<string, readonly [number, number, number]>> = {
  "pfc-tx-packet-rate": [40, 10, 8],
  "cpu-usage": [0.4, 0.03, 0.004],
  "gpu-duty-cycle": [90, 5, 0.6],
  "gpu-power-draw": [500, 30, 4],
};

export interface TestFleet {
  readonly machines: number;
  readonly ticks: number;
  readonly seed: number;
  readonly stepS?: number;
  /** Changes a machine's value at a second from the start. */
  readonly act?: (metric: string, machine: number, second: number, value: number) => number;
}

export function testFleet({ machines, ticks, seed, stepS = 1, act }: TestFleet): Fleet {
  const random = seeded(seed);
  const scale = 0.8 + 0.4 * random();
  const period = 9 + 6 * random();
  const grids = Object.entries(KINDS).map(([metric, kind]) => {
    const [level, swing, noise] = kind.map((value) => value * scale) as [number, number, number];
    const mean = Float32Array.from({ length: machines * ticks }, (_, i) => {
      const machine = Math.floor(i / ticks);
      const second = (i % ticks) * stepS;
      const common = level + swing * Math.sin((2 * Math.PI * second) / period);
      const value = Math.max(0, common + noise * gaussian(random));
      return act ? act(metric, machine, second, value) : value;
    });
    return gridOf(metric, mean, ticks, stepS);
  });
  return {
    machines: Array.from({ length: machines }, (_, m) => `node-${m}`),
    role: new Int32Array(machines),
    roles: ["worker"],
    grids,
    missing: [],
  };
}

export function gridOf(
  metric: string,
  mean: Float32Array,
  ticks: number,
  stepS: number,
): MetricGrid {
  return {
    metric,
    source: metric,
    stepS,
    startS: 1000,
    ticks,
    mean,
    low: mean,
    high: mean,
    lowDevice: null,
    highDevice: null,
    reporting: null,
    devices: [],
    coverage: 1,
  };
}
