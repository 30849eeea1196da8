/** What sensors show beside what the engine's faults do: a loud victim, a broken exporter, memory that runs out. */
import type { Simulation } from "../../../src/simulate/cluster/times.ts";
import { uniform } from "../../../src/simulate/cluster/noise.ts";
import type { MetricOptions } from "../../../src/simulate/emit/metrics.ts";
import {
  HEALTHY_GPU,
  HEALTHY_MACHINE,
  type Effects,
  type GpuEffect,
} from "../../../src/simulate/emit/metrics/effects.ts";
import type { Family } from "../../../src/simulate/emit/metrics/families.ts";
import { breakSeries } from "../../machines/fleet/telemetry.ts";
import type { Moment } from "./moment.ts";
import type { Scenario } from "./scenario.ts";

/** `momentOf` is asked only when the job is over. */
export function metricOptions(
  scenario: Scenario,
  simulation: Simulation,
  momentOf: () => Moment,
): MetricOptions {
  const { intervalS, tailS, metricGpus } = scenario;
  return {
    intervalS,
    tailS,
    gpusPerMachine: metricGpus,
    effects: (effects, { severities, stopped }) =>
      severities.some((severity) => severity > 1)
        ? alteredEffects(scenario, simulation, effects, stopped)
        : effects,
    distort: distortion(scenario, simulation, momentOf),
  };
}

function alteredEffects(
  scenario: Scenario,
  { spec, topology }: Simulation,
  effects: Effects,
  stopped: boolean,
): Effects {
  const { victim, family, truths } = scenario;
  const guilty = new Set(
    victim?.isCulpritMute === true ? truths.flatMap(({ ranks }) => ranks) : [],
  );
  const guiltyMachines = new Set([...guilty].map((rank) => topology.machineOf(rank)));
  const stalled =
    family === "storage-hang" && stopped ? topology.machineOf(truths[0]!.ranks[0]!) : -1;
  // The engine is told of a GPU that stops; in truth all GPUs spin in their operators, and no machine is unlike another.
  const sound = family === "mismatch" && stopped ? topology.machineOf(truths[0]!.ranks[0]!) : -1;
  return {
    gpu(rank) {
      const own = topology.machineOf(rank) === sound ? HEALTHY_GPU : effects.gpu(rank);
      if (victim !== null && topology.machineOf(rank) === victim.machine)
        return {
          ...own,
          pfc: own.pfc * victim.pfc,
          congestion: own.congestion * victim.congestion,
        };
      return guilty.has(rank) ? faint(own) : own;
    },
    machine(machine) {
      const own = machine === sound ? HEALTHY_MACHINE : effects.machine(machine);
      if (machine === victim?.machine) return { ...own, cpu: own.cpu * victim.cpu };
      if (machine === stalled)
        // A process or two in uninterruptible sleep, of 192 logical CPUs, and the caches behind them (judgement).
        return { ...own, iowait: own.iowait + 0.01 + 0.1 * uniform(spec.seed, machine, 6, 0xe1) };
      return guiltyMachines.has(machine) ? { ...HEALTHY_MACHINE, memory: own.memory } : own;
    },
  };
}

/** What cannot be hidden stays: a dead process holds no memory, a slow GPU works longer. */
function faint(own: Readonly<GpuEffect>): GpuEffect {
  return {
    ...own,
    throttled: false,
    xid: 0,
    slowClock: 1,
    linkGen: 5,
    linkWidth: 16,
    traffic: 1,
    pfc: 1,
    congestion: 1,
    linkDown: false,
  };
}

function distortion(
  scenario: Scenario,
  { topology, spec }: Simulation,
  momentOf: () => Moment,
): NonNullable<MetricOptions["distort"]> {
  const { exporter, intervalS, lost, family, truths } = scenario;
  const unseen = new Set(
    (lost?.kind === "metrics" ? lost.ranks : []).map((rank) => topology.machineOf(rank)),
  );
  const gone = family === "machine-lost" ? topology.machineOf(truths[0]!.ranks[0]!) : -1;
  const full = family === "host-memory" ? topology.machineOf(truths[0]!.ranks[0]!) : -1;
  const served = new Map<string, Float64Array>();
  const tickOf = (ns: number): number => Math.floor(ns / 1e9 / intervalS);
  return (metric: Family, machine, gpu, values) => {
    if (unseen.has(machine)) values.fill(NaN);
    if (machine === gone) values.fill(NaN, tickOf(momentOf().stopNs));
    if (machine === full && metric.name === "node_memory_MemAvailable_bytes")
      fillUp(values, tickOf(momentOf().stopNs), uniform(spec.seed, machine, 7, 0xe1));
    if (exporter === null) return;
    if (exporter.kind !== "other-machine") {
      if (machine === exporter.machine)
        breakSeries(
          { ...exporter, kind: exporter.kind, which: exporter.from % 4 },
          metric,
          gpu,
          intervalS,
          values,
        );
      return;
    }
    const key = `${metric.name}/${gpu}`;
    if (machine === exporter.from) served.set(key, values.slice());
    const other = served.get(key);
    if (machine === exporter.machine && other !== undefined) values.set(other);
  };
}

/** The kernel kills when nothing is left; how long that took differs. */
function fillUp(available: Float64Array, stop: number, share: number): void {
  const from = Math.floor(stop * (0.2 + 0.75 * share));
  for (let t = from; t < Math.min(stop, available.length); t++)
    available[t]! *= 1 - (0.985 * (t - from + 1)) / (stop - from);
}
