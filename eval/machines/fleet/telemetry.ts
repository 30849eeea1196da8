/** Exporters that break while the machine is sound, as users of dcgm-exporter report. */
import type { Family } from "../../../src/simulate/emit/metrics/families.ts";
import { Draw } from "./draw.ts";
import type { Nuisances } from "./nuisances.ts";

/**
 * engine-zero: graphics engine activity 0 while all else is normal (dcgm-exporter 662); gpu-frozen: the metrics of one
 * GPU stand still (164); machine-stale, machine-silent: all of a machine's GPU metrics stand still or are gone while
 * node_exporter goes on (gpu-monitoring-tools 188); blank: one metric of a GPU has DCGM's blank value, which readers
 * drop; gpu-silent: one GPU's samples are gone while it works on.
 */
export const TELEMETRY_FAULTS = [
  "engine-zero",
  "gpu-frozen",
  "machine-stale",
  "machine-silent",
  "blank",
  "gpu-silent",
] as const;
export type TelemetryFaultKind = (typeof TELEMETRY_FAULTS)[number];

export interface TelemetryFault {
  readonly kind: TelemetryFaultKind;
  readonly machine: number;
  /** null: all of its GPUs. */
  readonly gpu: number | null;
  /** Index of the metric for "blank". */
  readonly which: number;
  readonly fromS: number;
  readonly untilS: number;
}

/** Metrics that blanks were seen in: profiling fields, which other tools can take away. */
const BLANKED = [
  "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
  "DCGM_FI_PROF_SM_ACTIVE",
  "DCGM_FI_PROF_DRAM_ACTIVE",
  "DCGM_FI_DEV_GPU_UTIL",
];
const ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";

export function drawTelemetry(
  machines: number,
  gpus: number,
  seconds: number,
  nuisances: Nuisances,
  culprits: ReadonlySet<number>,
  seed: number,
): TelemetryFault[] {
  const faults: TelemetryFault[] = [];
  const expected = nuisances.telemetry + nuisances.telemetryPerMachine * machines;
  if (expected === 0) return faults;
  TELEMETRY_FAULTS.forEach((kind, k) => {
    const count = new Draw(seed, "telemetry", k).poisson(0, expected);
    for (let n = 0; n < count; n++) {
      const draw = new Draw(seed, "telemetry", 100 + 100 * k + n);
      const machine = draw.whole(0, machines);
      // What is wrong with a culprit is its fault alone, or the truth would be doubtful.
      if (culprits.has(machine)) continue;
      const isOne = kind === "gpu-frozen" || kind === "gpu-silent" || kind === "blank";
      // Most last until somebody restarts the exporter, and many began before anybody looked.
      const fromS = draw.chance(1, 0.4) ? 0 : draw.within(2, 0, seconds);
      const untilS = draw.chance(3, 0.7) ? Infinity : fromS + draw.magnitude(4, 30, 600);
      const gpu = isOne ? draw.whole(5, gpus) : null;
      faults.push({ kind, machine, gpu, which: draw.whole(6, BLANKED.length), fromS, untilS });
    }
  });
  return faults;
}

/** What becomes of one series, in place. */
export function breakSeries(
  fault: TelemetryFault,
  family: Family,
  gpu: number,
  stepS: number,
  values: Float64Array,
): void {
  if (!family.name.startsWith("DCGM_") || (fault.gpu !== null && fault.gpu !== gpu)) return;
  const { kind, which } = fault;
  if (kind === "engine-zero" && family.name !== ENGINE) return;
  if (kind === "blank" && family.name !== BLANKED[which]) return;
  const from = Math.max(0, Math.floor(fault.fromS / stepS));
  const until = Math.min(values.length, Math.ceil(fault.untilS / stepS));
  const value =
    kind === "engine-zero"
      ? 0
      : kind === "gpu-frozen" || kind === "machine-stale"
        ? values[Math.min(from, values.length - 1)]!
        : NaN;
  for (let t = from; t < until; t++) values[t] = value;
}
