/** Plots of what was unlike, worked out: a machine's line and the band of its peers, at most so many points. */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import { catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { MachinePicture } from "../../model/machine-picture.ts";
import type { Deviation, MachineReport } from "../../model/machine-report.ts";
import { peersOf } from "./roles.ts";

const POINTS = 180;
const MACHINES = 12;
const METRICS = 6;
const PEERS = 200;

export function machinePictures(fleet: Fleet, report: MachineReport): MachinePicture[] {
  return report.faulty.slice(0, MACHINES).flatMap(({ machine, deviations }) => {
    const m = fleet.machines.indexOf(machine);
    const shown = new Set<string>();
    return deviations.flatMap((deviation) => {
      const id = absent(deviation) ? someMetric(fleet, deviation) : deviation.metric;
      const grid = fleet.grids.find(({ metric }) => metric === id);
      if (m < 0 || !grid || shown.has(grid.metric) || shown.size >= METRICS) return [];
      shown.add(grid.metric);
      return [pictureOf(fleet, grid, m, deviation)];
    });
  });
}

function absent({ direction }: Deviation): boolean {
  return direction === "absent";
}

/** Any metric shows that samples end. */
function someMetric({ grids }: Fleet, { metric }: Deviation): string {
  const wanted = metric === "nics" ? "tcp-rdma-throughput" : "gpu-power-draw";
  return grids.find((grid) => grid.metric === wanted)?.metric ?? grids[0]?.metric ?? "";
}

function pictureOf(
  fleet: Fleet,
  grid: MetricGrid,
  m: number,
  deviation: Deviation,
): MachinePicture {
  const { ticks, startS, stepS } = grid;
  const values = deviation.direction === "high" ? grid.high : grid.low;
  const perPoint = Math.max(1, Math.ceil(ticks / POINTS));
  const points = Math.ceil(ticks / perPoint);
  const peers = peersOf(fleet.role, m, PEERS);
  const scratch = new Float64Array(peers.length);
  const meanAt = (machine: number, point: number): number => {
    let sum = 0;
    let seen = 0;
    const end = Math.min(ticks, (point + 1) * perPoint);
    for (let t = point * perPoint; t < end; t++) {
      const value = values[machine * ticks + t]!;
      if (value !== value) continue;
      sum += value;
      seen++;
    }
    return sum / seen;
  };
  const orNull = (value: number): number | null => (Number.isFinite(value) ? value : null);
  const at = Array.from({ length: points }, (_, point) => {
    let seen = 0;
    for (const peer of peers) {
      const value = meanAt(peer, point);
      if (value === value) scratch[seen++] = value;
    }
    const quantile = (q: number): number | null =>
      seen === 0 ? null : select(scratch, 0, seen, quantilePlace(seen, q));
    return {
      timeS: startS + (point + 0.5) * perPoint * stepS,
      value: orNull(meanAt(m, point)),
      low: quantile(0.1),
      middle: quantile(0.5),
      high: quantile(0.9),
    };
  });
  const { title, unit } = catalogMetric(grid.metric) ?? unknownMetric(grid.metric);
  return {
    machine: fleet.machines[m]!,
    metric: grid.metric,
    title,
    unit,
    device: deviation.device,
    timeS: at.map((point) => point.timeS),
    value: at.map((point) => point.value),
    low: at.map((point) => point.low),
    middle: at.map((point) => point.middle),
    high: at.map((point) => point.high),
    fromS: deviation.fromS,
    toS: deviation.toS,
  };
}
