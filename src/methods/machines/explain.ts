/** `machines --explain`: every metric of a machine beside its peers, what was joined, what was left out and why. */
import { quantilePlace, select } from "../../maths/quickselect.ts";
import type { Fleet, MetricGrid } from "../../model/fleet.ts";
import type { ExplainedMetric, MachineExplanation } from "../../model/machine-explanation.ts";
import { shortName } from "../../model/machine-names.ts";
import type { MachineReport, Phase } from "../../model/machine-report.ts";
import { CATALOG, catalogMetric, unknownMetric } from "../../model/metric-catalog.ts";
import { isOutsider, withoutOutsiders } from "./outsiders.ts";
import { isIn } from "./phases.ts";
import { withoutWarmUp } from "./restarts.ts";
import { peersOf } from "./roles.ts";
import { deviationWords } from "./words.ts";

const PEERS = 200;

/** `name`: any of its names. Null where no machine is called so. */
export function explainMachine(
  given: Fleet,
  report: MachineReport,
  name: string,
): MachineExplanation | null {
  const fleet = withoutOutsiders(given);
  const names =
    fleet.names?.joined.find(({ machine, names: all }) => machine === name || all.includes(name)) ??
    null;
  const wanted = names?.machine ?? name;
  const exact = fleet.machines.indexOf(wanted);
  const m =
    exact >= 0
      ? exact
      : fleet.machines.findIndex((machine) => shortName(machine) === shortName(wanted));
  if (m < 0) return null;
  const machine = fleet.machines[m]!;
  const peers = peersOf(fleet.role, m, PEERS);
  return {
    machine,
    role: fleet.roles[fleet.role[m]!]!,
    peers: peers.length,
    names,
    metrics: fleet.grids.map((grid) => explained(grid, m, machine, peers, report)),
    leftOut: leftOut(fleet, given, m, report),
  };
}

function explained(
  grid: MetricGrid,
  m: number,
  machine: string,
  peers: readonly number[],
  report: MachineReport,
): ExplainedMetric {
  const { metric: id, source, stepS: intervalS, ticks, mean } = grid;
  const { title, unit, harm } = catalogMetric(id) ?? unknownMetric(id);
  const values = harm === "low" ? grid.low : harm === "high" ? grid.high : mean;
  const works = workingTicks(grid, report.phases);
  const usual = (one: number): number => {
    const row = new Float64Array(works.length);
    let seen = 0;
    for (const t of works) {
      const value = values[one * ticks + t]!;
      if (value === value) row[seen++] = value;
    }
    return seen === 0 ? NaN : select(row, 0, seen, seen >> 1);
  };
  const others = Float64Array.from(peers, usual).filter((value) => value === value);
  const quantile = (q: number): number =>
    select(others, 0, others.length, quantilePlace(others.length, q));
  const value = usual(m);
  let seen = 0;
  for (let t = 0; t < ticks; t++) if (!Number.isNaN(mean[m * ticks + t]!)) seen++;
  return {
    metric: id,
    title,
    unit,
    source,
    intervalS,
    coverage: seen / ticks,
    value: Number.isNaN(value) ? null : value,
    peers:
      others.length === 0
        ? null
        : { low: quantile(0.1), middle: quantile(0.5), high: quantile(0.9) },
    found: seen === 0 ? "no samples of this machine" : foundOf(id, machine, report),
  };
}

function foundOf(metric: string, machine: string, report: MachineReport): string {
  const accused = report.faulty
    .filter((one) => one.machine === machine)
    .flatMap(({ deviations }) => deviations)
    .find((one) => one.metric === metric);
  if (accused) return `unlike its peers from ${clock(accused.fromS)}: ${deviationWords(accused)}`;
  const broken = report.telemetry.find((one) => one.machine === machine && one.metric === metric);
  if (broken) return `not believed: ${broken.why}`;
  const jitter = report.jitter.find((one) => one.machine === machine && one.metric === metric);
  if (jitter) return `did not last: ${clock(jitter.fromS)} to ${clock(jitter.toS)}, ${jitter.why}`;
  return "as its peers";
}

/** Without pauses and the time before and after the job; all of it where nothing else is left. */
function workingTicks({ ticks, startS, stepS }: MetricGrid, phases: readonly Phase[]): number[] {
  const all = Array.from({ length: ticks }, (_, t) => t);
  const works = all.filter(
    (t) => !isIn(phases, startS + (t + 0.5) * stepS, "idle", "pause", "warm-up"),
  );
  return works.length > 0 ? works : all;
}

function leftOut(
  fleet: Fleet,
  given: Fleet,
  m: number,
  report: MachineReport,
): { what: string; why: string }[] {
  const there = new Set(fleet.grids.map(({ metric }) => metric));
  const absent = CATALOG.filter(({ id, isMinder }) => isMinder && !there.has(id));
  const warming = given.grids.filter((grid) => {
    const without = withoutWarmUp(grid);
    const from = m * grid.ticks;
    return (
      without !== grid &&
      without.mean
        .subarray(from, from + grid.ticks)
        .some((value, t) => value !== value && grid.mean[from + t] === grid.mean[from + t])
    );
  });
  return [
    ...(isOutsider(fleet, m)
      ? [
          {
            what: "the machine",
            why: `it takes no part in the job (${fleet.roles[fleet.role[m]!]})`,
          },
        ]
      : []),
    ...(absent.length > 0
      ? [{ what: absent.map(({ id }) => id).join(", "), why: "nobody recorded it" }]
      : []),
    ...(warming.length > 0
      ? [
          {
            what: warming.map(({ metric }) => metric).join(", "),
            why: "the first samples after a gap: the exporter's profiling watch was not warm yet",
          },
        ]
      : []),
    ...report.phases
      .filter(({ what }) => what !== "halt")
      .map(({ what, fromS, toS }) => ({
        what: `${clock(fromS)} to ${clock(toS)}`,
        why:
          what === "pause"
            ? "the whole job paused"
            : `the whole job was ${what === "idle" ? "idle" : "warming up"}`,
      })),
    ...(fleet.names?.disputed ?? []).map((name) => ({
      what: name,
      why: "stands for several machines and joins none",
    })),
  ];
}

function clock(seconds: number): string {
  return new Date(Math.round(1000 * seconds)).toISOString().slice(11, 19);
}
