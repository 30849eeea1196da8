/**
 * Millisecond data of NICs (Minder §6.6): in every step of a collective all NICs carry the same bytes, a healthy one
 * in a burst, one behind a slow PCIe link steadily and slowly. Means are equal; the peaks are not.
 */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import type { MetricGrid } from "../../model/fleet.ts";

/** Coarser samples already are means over many steps. */
const FINE_S = 0.1;
/** Two tenths of a second: several steps of a collective. */
const LEAST_TICKS = 200;
const WINDOWS = 30;
const PEAK = 0.95;

export function isFine({ stepS, metric, ticks }: MetricGrid): boolean {
  return stepS <= FINE_S && /throughput|bandwidth/.test(metric) && ticks >= 4 * LEAST_TICKS;
}

/** The same metric, a tick for every window: what was reached in its best twentieth. */
export function peaksOf(grid: MetricGrid): MetricGrid {
  const { ticks, stepS } = grid;
  const window = Math.max(LEAST_TICKS, Math.floor(ticks / WINDOWS));
  const count = Math.floor(ticks / window);
  const machines = grid.mean.length / ticks;
  const peaks = (
    values: Float32Array,
    device: Uint8Array | null,
  ): { values: Float32Array; device: Uint8Array | null } => {
    const out = new Float32Array(machines * count).fill(NaN);
    const devices = device && new Uint8Array(machines * count);
    const scratch = new Float64Array(window);
    for (let m = 0; m < machines; m++) {
      for (let w = 0; w < count; w++) {
        const from = m * ticks + w * window;
        let seen = 0;
        for (let i = 0; i < window; i++) {
          const value = values[from + i]!;
          if (value === value) scratch[seen++] = value;
        }
        if (seen === 0) continue;
        const peak = select(scratch, 0, seen, quantilePlace(seen, PEAK));
        out[m * count + w] = peak;
        if (devices) devices[m * count + w] = deviceAtPeak(values, device, from, window, peak);
      }
    }
    return { values: out, device: devices };
  };
  const low = peaks(grid.low, grid.lowDevice);
  const high = grid.high === grid.low ? low : peaks(grid.high, grid.highDevice);
  return {
    ...grid,
    source: `${grid.source}, peaks`,
    stepS: stepS * window,
    ticks: count,
    mean: grid.mean === grid.low ? low.values : peaks(grid.mean, null).values,
    low: low.values,
    high: high.values,
    lowDevice: low.device,
    highDevice: high.device,
    reporting: grid.reporting && new Uint8Array(machines * count).fill(grid.devices.length),
  };
}

/** Which device it is most of the time that the peak was reached. */
function deviceAtPeak(
  values: Float32Array,
  device: Uint8Array,
  from: number,
  window: number,
  peak: number,
): number {
  const votes = new Uint32Array(256);
  for (let i = from; i < from + window; i++) {
    if (values[i]! >= 0.9 * peak) votes[device[i]!]!++;
  }
  return votes.indexOf(votes.reduce((most, count) => Math.max(most, count), 0));
}
