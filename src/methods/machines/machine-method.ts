/** "Which machine is going bad?", asked of a job's monitoring metrics. */
import type { Cause } from "../../model/cause.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Fleet } from "../../model/fleet.ts";
import type { Job } from "../../model/job.ts";
import type { FaultyMachine, MachineReport } from "../../model/machine-report.ts";
import type { Method } from "../../model/method.ts";
import { healthCounter } from "../../model/health-counters.ts";
import { findMachines } from "./find-machines.ts";
import { componentOf, haltedPart, linkBetween, type Component } from "./component.ts";
import { atHalt, causeAtHalt, haltOf } from "./halted.ts";
import { jobFleet } from "./job-fleet.ts";
import { ALL_MACHINES } from "./roles.ts";
import { SHARED_GPU, STRAY_MEMORY } from "../../model/deviation-words.ts";

/** A machine's metrics say less about the cause than its processes do. */
const MOST_WEIGHT = 0.9;
const MOST_SAID = 8;

export const faultyMachine: Method = {
  id: "machines/peers",
  applies: (job) => (job.metrics?.length ?? 0) > 0,
  *run(job) {
    const fleet = jobFleet(job);
    if (!fleet || fleet.grids.length === 0) return;
    yield* machineFindings(job, withoutStages(fleet, findMachines(fleet)), fleet);
  },
};

/**
 * With one or two machines a stage nobody has peers. In a job that stands still all stages wait alike, so that all
 * machines are peers.
 */
function withoutStages(fleet: Fleet, report: MachineReport): MachineReport {
  if (report.faulty.length > 0 || !haltOf(report) || fleet.roles.length < 2) return report;
  if (fleet.machines.length > FEW_A_STAGE * fleet.roles.length) return report;
  const role = new Int32Array(fleet.machines.length);
  const again = findMachines({ ...fleet, role, roles: [ALL_MACHINES] });
  return again.faulty.length > 0 ? again : report;
}

const FEW_A_STAGE = 2;
/** Less than this much data shows nobody to be well. */
const LEAST_SEEN_S = 120;

/** `fleet`: for NICs that exporters know under two names. */
export function machineFindings(
  job: Job,
  report: MachineReport,
  fleet: Fleet | null = null,
): NewFinding[] {
  const { faulty, telemetry } = report;
  const accused = faulty.slice(0, MOST_SAID).map((one) => accusedOf(job, report, fleet, one));
  const link = faulty.length > MOST_SAID ? null : linkBetween(faulty, accused);
  return [
    ...accused.map((one, k) =>
      findingOf(
        report,
        faulty[k]!,
        link
          ? {
              ...one,
              component: link,
              share: OF_LINK,
              because: `; ${link.name} fell together: the link between them`,
            }
          : one,
      ),
    ),
    ...(telemetry.length > 0 ? [telemetryFinding(report)] : []),
    ...(faulty.length === 0 ? [nobody(report)] : []),
  ];
}

/** Both ends accuse a link: each for itself is not the whole of it. */
const OF_LINK = 0.8;
/** Of a machine that was slow long before the job stopped. */
const OF_EARLIER = 0.4;
/** Of one that only does more than others, since the job stopped. */
const OF_BUSIER = 0.4;
const OF_BUSY = ["cpu-usage", "memory-usage", "disk-usage", "tcp-throughput"];
const SLOW: readonly Cause[] = ["gpu-slow", "network-slow", "cpu-stall"];

interface Accused {
  readonly component: Component;
  readonly cause: Cause;
  /** Of the machine's score. */
  readonly share: number;
  readonly because: string;
}

function accusedOf(
  job: Job,
  report: MachineReport,
  fleet: Fleet | null,
  faulty: FaultyMachine,
): Accused {
  const halt = haltOf(report);
  const sudden = halt && atHalt(faulty, halt);
  if (sudden) {
    const part = haltedPart(job, fleet, sudden);
    const cause = causeAtHalt(job, sudden.deviations, part.ranks);
    const isGpu = cause === "gpu-hang" || cause === "gpu-error";
    const component = isGpu && part.type === "rank" ? { ...part, type: "gpu" as const } : part;
    const isBusier = sudden.deviations.every(
      ({ metric, direction }) => direction === "high" && OF_BUSY.includes(metric),
    );
    return isBusier
      ? { component, cause, share: OF_BUSIER, because: "; a busy machine stops nobody by that" }
      : { component, cause, share: 1, because: "" };
  }
  const component = componentOf(job, fleet, faulty);
  const cause = causeOf(faulty);
  if (!halt || !SLOW.includes(cause)) return { component, cause, share: 1, because: "" };
  const because = "; it was so long before the job stopped";
  return { component, cause, share: OF_EARLIER, because };
}

function findingOf(
  report: MachineReport,
  faulty: FaultyMachine,
  { component, cause, share, because }: Accused,
): NewFinding {
  const { machine, score, why, sinceS, untilS, deviations, role, order } = faulty;
  const weight = Math.min(MOST_WEIGHT, score);
  const since = new Date(1000 * sinceS).toISOString();
  const says = `${machine} is unlike its peers (${role}): ${why}${because}`;
  return {
    says,
    weight,
    at: [],
    data: {
      fact: "odd-machine",
      machine,
      since,
      until: untilS === null ? null : new Date(1000 * untilS).toISOString(),
      order,
      metrics: deviations.slice(0, 10).map(({ metric, direction, device, value, peers }) => ({
        metric,
        direction,
        device,
        value,
        peers,
      })),
    },
    accuses: [
      {
        kind: "faulty-machine",
        ...component,
        cause,
        weight: share * weight,
        why: says,
      },
    ],
    clears: [],
    lacks: coverageLacks(report),
  };
}

/** The cause is what the metrics allow to say, and often no more than "unknown". */
export function causeOf({ deviations }: FaultyMachine): Cause {
  const is = (metric: string, direction: string): boolean =>
    deviations.some((one) => one.metric === metric && one.direction === direction);
  if (is("gpus", "absent") || is("xid-errors", "high")) return "gpu-error";
  if (is("reporting", "absent")) return "process-gone";
  if (is("infiniband-port-state", "low") || is("nics", "absent")) return "network-hang";
  const physical = deviations.find(({ metric, direction }) => {
    const counter = healthCounter(metric);
    return counter?.decides === true && counter.harm === direction;
  });
  if (physical) return healthCounter(physical.metric)!.cause;
  if (is(SHARED_GPU, "high") || is(STRAY_MEMORY, "high")) return "platform";
  if (is("gpu-thermal-violation", "high") || is("gpu-power-violation", "high")) return "gpu-slow";
  if (is("gpu-memory-clock", "low")) return "gpu-slow";
  const counted = deviations.find(({ metric, direction }) => {
    const counter = healthCounter(metric);
    return counter !== null && counter.harm === direction && counter.cause !== "platform";
  });
  if (counted) return healthCounter(counted.metric)!.cause;
  if (is("pfc-rx-packet-rate", "high")) return "network-slow";
  if (is("pfc-tx-packet-rate", "high") || is("port-transmit-wait", "high")) return "network-slow";
  if (is("gpu-memory-used", "low") || (is("cpu-usage", "low") && is("memory-usage", "low")))
    return "process-gone";
  const isIdle = is("gpu-duty-cycle", "low") || is("gpu-graphics-engine-activity", "low");
  if (["cpu-usage", "load", "cpu-pressure"].some((metric) => is(metric, "high")))
    return "cpu-stall";
  if (["disk-busy", "io-pressure", "blocked-processes"].some((metric) => is(metric, "high")))
    return "storage";
  // A GPU without work lowers its clock by itself.
  if (isIdle) return is("cpu-usage", "low") ? "process-stopped" : "cpu-stall";
  if (is("gpu-clocks", "low") || is("gpu-temperature", "high")) return "gpu-slow";
  if (["memory-usage", "memory-pressure", "swapping"].some((metric) => is(metric, "high")))
    return "host-memory";
  if (is("tcp-rdma-throughput", "low")) return "network-slow";
  return "unknown";
}

function telemetryFinding({ telemetry }: MachineReport): NewFinding {
  const [first] = telemetry;
  const more = telemetry.length > 1 ? `; ${telemetry.length - 1} more like it` : "";
  return {
    says: `the monitoring of ${first!.machine} is broken, not the machine: ${first!.why}${more}`,
    weight: 0.3,
    at: [],
    data: { fact: "broken-monitoring", telemetry: telemetry.slice(0, 10) },
    accuses: [],
    clears: [],
  };
}

function nobody(report: MachineReport): NewFinding {
  const { machines, metrics, jitter, phases, fromS, toS } = report;
  const isCrowded = report.missing.some((text) => text.startsWith("a quarter of the machines"));
  const isHalted = phases.some(({ what }) => what === "halt" || what === "idle");
  const seen = metrics.filter(({ coverage }) => coverage > 0).length;
  return {
    says: `no machine of ${machines} is unlike its peers for long in any of ${seen} metrics`,
    weight: 0.3,
    at: [],
    data: {
      fact: "alike-machines",
      machines,
      jitters: jitter.length,
      allAlike: !isHalted && machines > 2 && !isCrowded && toS - fromS >= LEAST_SEEN_S,
    },
    accuses: [],
    clears: [],
    lacks: coverageLacks(report),
  };
}

function coverageLacks({ metrics, missing }: MachineReport): string[] {
  const absent = metrics.filter(({ coverage }) => coverage === 0).map(({ name }) => name);
  const list = absent.length > 6 ? `${absent.slice(0, 6).join(", ")}, …` : absent.join(", ");
  return [
    ...missing,
    ...(absent.length > 0
      ? [`metrics that nobody recorded: ${list} (${absent.length} of Minder's 21)`]
      : []),
  ];
}
