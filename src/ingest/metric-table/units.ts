/** Units of tables: as a heading or a value names them, and by the values where nothing is named. */
import { catalogMetric } from "../../model/metric-catalog.ts";
import type { MetricSamples, MetricSet } from "../../model/metrics.ts";

const MIB = 1 << 20;
/** By the catalog's unit: other units that people write, and what one of them is. */
const FACTORS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  share: { "%": 0.01, percent: 0.01, pct: 0.01, ratio: 1, share: 1, fraction: 1 },
  "%": { "%": 1, percent: 1, pct: 1, ratio: 100, share: 100, fraction: 100 },
  MiB: {
    b: 1 / MIB,
    bytes: 1 / MIB,
    kib: 1 / 1024,
    kb: 1 / 1024,
    // NVIDIA's tools call a MiB a MB now and then; the difference matters to nobody who compares machines.
    mib: 1,
    mb: 1,
    gib: 1024,
    gb: 1024,
  },
  W: { w: 1, watt: 1, watts: 1, mw: 1e-3, kw: 1e3 },
  "°C": { c: 1, "°c": 1, celsius: 1, degc: 1 },
  MHz: { mhz: 1, ghz: 1e3, hz: 1e-6 },
  "B/s": {
    "b/s": 1,
    "bytes/s": 1,
    "kb/s": 1e3,
    "mb/s": 1e6,
    "gb/s": 1e9,
    "kib/s": 1024,
    "mib/s": MIB,
    "gib/s": 2 ** 30,
    bps: 1 / 8,
    kbps: 125,
    mbps: 1.25e5,
    gbps: 1.25e8,
    "kbit/s": 125,
    "mbit/s": 1.25e5,
    "gbit/s": 1.25e8,
  },
  "1/s": { "1/s": 1, "/s": 1, pps: 1, "packets/s": 1, rate: 1 },
};

/** Factor to the catalog's unit; null where the text is no such unit. */
export function unitFactor(catalogUnit: string, text: string): number | null {
  const trimmed = text.trim();
  // "Gb/s" are bits, "GB/s" bytes: the only place where the case matters.
  const bits = /^([KMGkmg]?)b\/s$/.exec(trimmed);
  if (bits && catalogUnit === "B/s") return FACTORS["B/s"]![`${bits[1]!.toLowerCase()}bps`]!;
  return FACTORS[catalogUnit]?.[trimmed.toLowerCase()] ?? null;
}

const SHARE_MOST = 1.5;
const MEMORY_MOST_MIB = 1e6;
const MEMORY_MOST_KIB = 2e9;

/** Whole metrics whose values can only be of another unit are brought to the catalog's. `known`: those with a unit. */
export function fixUnits(set: MetricSet, known: ReadonlySet<string>): void {
  for (const samples of set.samples) {
    const metric = known.has(samples.name) ? null : catalogMetric(samples.name);
    if (metric === null || metric.id !== samples.name) continue;
    const factor = impliedFactor(metric.id, metric.unit, samples);
    if (factor === 1) continue;
    for (let i = 0; i < samples.value.length; i++) samples.value[i]! *= factor;
  }
}

function impliedFactor(id: string, unit: string, { value }: MetricSamples): number {
  let most = -Infinity;
  let hasParts = false;
  for (let i = 0; i < value.length; i++) {
    if (value[i]! > most) most = value[i]!;
    hasParts ||= !Number.isInteger(value[i]);
  }
  if (unit === "share") return most > SHARE_MOST ? 0.01 : 1;
  // Only zeros and ones would be an idle GPU in whole percent as well.
  if (unit === "%") return most <= 1 && hasParts ? 100 : 1;
  if (id === "gpu-memory-used" && most > MEMORY_MOST_MIB) {
    return most > MEMORY_MOST_KIB ? 1 / MIB : 1 / 1024;
  }
  return 1;
}
