/**
 * NICs by the millisecond during Reduce-Scatter (Minder §6.6, Figure 16): healthy ones send their part at full speed and
 * then nothing until the slowest is done; those behind a degraded PCIe link send the same bytes, slowly and steadily.
 */
import type { Fleet, MetricGrid } from "../../../src/model/fleet.ts";
import { heavy } from "../../../src/simulate/emit/metrics/spread.ts";
import { Draw } from "./draw.ts";

export interface NicMillisecondsOptions {
  readonly machines?: number;
  /** 4 or 8. */
  readonly nicsPerMachine?: number;
  readonly seconds?: number;
  readonly seed: number;
  /** How many machines have one bad NIC each. */
  readonly badMachines?: number;
  /** How much slower its link is; §2.1 has 800 to 500 Mbit/s, the injected ones are worse (assumed 2.5 to 6). */
  readonly slowdown?: number;
  /** 0: none. */
  readonly noise?: number;
}

export interface BadNic {
  readonly machine: number;
  readonly nic: number;
}

export interface NicMilliseconds {
  readonly fleet: Fleet;
  readonly truth: { readonly bad: readonly BadNic[]; readonly stepMs: number };
}

const STEP_S = 0.001;
/** A 200 Gbit/s NIC, and how long it takes for its part of a step (assumed; "less than 100 ms per interaction"). */
const FULL_PER_S = 24e9;
const BURST_MS = 14;
/** Between two steps everybody computes. */
const PAUSE_MS = 6;

interface Plan {
  readonly machines: number;
  readonly nics: number;
  readonly ticks: number;
  readonly seed: number;
  readonly noise: number;
  readonly stepMs: number;
  readonly bad: readonly BadNic[];
}

function planOf(options: NicMillisecondsOptions): Plan {
  const { machines = 4, nicsPerMachine: nics = 4, seconds = 3, seed, noise = 1 } = options;
  const draw = new Draw(seed, "nic-milliseconds");
  const slowdown = options.slowdown ?? draw.within(0, 2.5, 6);
  const first = draw.whole(1, machines);
  const apart = Math.max(1, Math.floor(machines / 2));
  const bad = Array.from({ length: Math.min(2, machines, options.badMachines ?? 2) }, (_, n) => ({
    machine: (first + n * apart) % machines,
    nic: draw.whole(2 + n, nics),
  }));
  const stepMs = Math.round(BURST_MS * (bad.length > 0 ? slowdown : 1)) + PAUSE_MS;
  return { machines, nics, ticks: Math.round(seconds / STEP_S), seed, noise, stepMs, bad };
}

/** Bytes a second by the millisecond: the same bytes a step, within the time that the link needs for them. */
function nicSeries(
  { nics, ticks, seed, noise, stepMs, bad }: Plan,
  machine: number,
  nic: number,
): Float32Array {
  const isBad = bad.some((one) => one.machine === machine && one.nic === nic);
  const lastsMs = isBad ? stepMs - PAUSE_MS : BURST_MS;
  const rate = (FULL_PER_S * BURST_MS) / lastsMs;
  return Float32Array.from({ length: ticks }, (_, t) => {
    if (t % stepMs >= lastsMs) return 0;
    return Math.max(0, rate * (1 + noise * 0.04 * heavy(seed, machine * nics + nic, t, 0x115)));
  });
}

/** As a fleet whose only grid is the throughput: machines with the least and greatest of their NICs. */
export function nicMilliseconds(options: NicMillisecondsOptions): NicMilliseconds {
  const plan = planOf(options);
  const { machines, nics, ticks, bad, stepMs } = plan;
  const size = machines * ticks;
  const mean = new Float32Array(size);
  const low = new Float32Array(size).fill(Infinity);
  const high = new Float32Array(size).fill(-Infinity);
  const lowDevice = new Uint8Array(size);
  const highDevice = new Uint8Array(size);
  for (let machine = 0; machine < machines; machine++) {
    for (let nic = 0; nic < nics; nic++) {
      nicSeries(plan, machine, nic).forEach((value, t) => {
        const cell = machine * ticks + t;
        // The catalog has it as the sum over the NICs.
        mean[cell]! += value;
        if (value < low[cell]!) {
          low[cell] = value;
          lowDevice[cell] = nic;
        }
        if (value > high[cell]!) {
          high[cell] = value;
          highDevice[cell] = nic;
        }
      });
    }
  }
  const devices = Array.from({ length: nics }, (_, nic) => `mlx5_${nic}`);
  const reporting = new Uint8Array(size).fill(nics);
  const grid = { ...gridHead(ticks), mean, low, high, lowDevice, highDevice, reporting, devices };
  const names = Array.from({ length: machines }, (_, machine) => `node${machine}`);
  return { fleet: fleetOf(names, grid), truth: { bad, stepMs } };
}

/** Each NIC as a machine of its own: what is compared in Figure 16. */
export function nicsAsMachines(options: NicMillisecondsOptions): NicMilliseconds {
  const plan = planOf(options);
  const { machines, nics, ticks, bad, stepMs } = plan;
  const mean = new Float32Array(machines * nics * ticks);
  for (let machine = 0; machine < machines; machine++) {
    for (let nic = 0; nic < nics; nic++)
      mean.set(nicSeries(plan, machine, nic), (machine * nics + nic) * ticks);
  }
  const none = { lowDevice: null, highDevice: null, reporting: null, devices: [] };
  const grid = { ...gridHead(ticks), mean, low: mean, high: mean, ...none };
  return { fleet: fleetOf(nicNames(plan), grid), truth: { bad, stepMs } };
}

/** "seconds,node0/mlx5_0,…": a row a millisecond, bytes a second. */
export function nicCsv(options: NicMillisecondsOptions): string {
  const plan = planOf(options);
  const columns = nicNames(plan).map((_, n) =>
    nicSeries(plan, Math.floor(n / plan.nics), n % plan.nics),
  );
  const lines = [["seconds", ...nicNames(plan)].join(",")];
  for (let t = 0; t < plan.ticks; t++)
    lines.push(
      [(t * STEP_S).toFixed(3), ...columns.map((column) => Math.round(column[t]!))].join(","),
    );
  return `${lines.join("\n")}\n`;
}

function nicNames({ machines, nics }: Plan): string[] {
  return Array.from(
    { length: machines * nics },
    (_, n) => `node${Math.floor(n / nics)}/mlx5_${n % nics}`,
  );
}

function gridHead(
  ticks: number,
): Pick<MetricGrid, "metric" | "source" | "stepS" | "startS" | "ticks" | "coverage"> {
  const metric = "tcp-rdma-throughput";
  return { metric, source: "bytes sent", stepS: STEP_S, startS: 0, ticks, coverage: 1 };
}

function fleetOf(machines: readonly string[], grid: MetricGrid): Fleet {
  return {
    machines,
    role: new Int32Array(machines.length),
    roles: ["all"],
    grids: [grid],
    missing: [],
  };
}
