/** Reports about machines for tests: small, whole, and with whatever text stands in every place for one. */
import type { MachinePicture } from "../../../src/model/machine-picture.ts";
import type { FaultyMachine, MachineReport } from "../../../src/model/machine-report.ts";

export const START_S = 1_794_700_800;
export const STEP_S = 10;

type Series = readonly (number | null)[];

/** Peers at 500 unless told otherwise; unlike them from the middle to the end. */
export function machinePicture(value: Series, given: Partial<MachinePicture> = {}): MachinePicture {
  const around = (level: number): number[] => value.map(() => level);
  return {
    machine: "node007",
    metric: "gpu-power-draw",
    title: "GPU power",
    unit: "W",
    device: "gpu3",
    timeS: value.map((_, i) => START_S + (i + 0.5) * STEP_S),
    value,
    low: around(480),
    middle: around(500),
    high: around(520),
    fromS: START_S + Math.floor(value.length / 2) * STEP_S,
    toS: START_S + value.length * STEP_S,
    ...given,
  };
}

export function faultyMachine(given: Partial<FaultyMachine> = {}): FaultyMachine {
  const sinceS = START_S + 100;
  const deviation = {
    metric: "gpu-power-draw",
    direction: "low",
    device: "gpu3",
    fromS: sinceS,
    toS: START_S + 200,
    value: 71,
    peers: 500,
    sigmas: 40,
  } as const;
  return {
    machine: "node007",
    metric: "gpu-power-draw",
    score: 0.97,
    sinceS,
    untilS: null,
    role: "stage 2",
    order: 1,
    why: "gpu3: GPU power 71 W, peers 500 W",
    deviations: [
      deviation,
      { ...deviation, metric: "reporting", direction: "absent", sigmas: Infinity },
    ],
    ...given,
  };
}

export function machineReport(given: Partial<MachineReport> = {}, text = ""): MachineReport {
  const [machine, metric, why] = [`node009${text}`, `own metric${text}`, `because${text}`];
  const [fromS, toS] = [START_S, START_S + 200];
  return {
    method: "peers",
    machines: 64,
    fromS,
    toS,
    metrics: [
      {
        name: "gpu-power-draw",
        source: `DCGM_FI_DEV_POWER_USAGE${text}`,
        coverage: 0.993,
        intervalS: 10,
      },
      { name: metric, source: "", coverage: 0.5, intervalS: 0.25 },
      { name: "cpu-usage", source: "", coverage: 0, intervalS: 0 },
    ],
    faulty: [],
    followers: [{ machine, metric, sinceS: fromS, after: `node007${text}` }],
    telemetry: [{ machine, metric, sinceS: fromS, untilS: null, why }],
    jitter: [{ machine, metric, fromS, toS, why }],
    jittersLeftOut: 7,
    phases: [{ what: "pause", fromS, toS }],
    missing: [why],
    ...given,
  };
}
