/** From what was judged machine by machine to the answer about the job: who was first, who only followed. */
import type { Fleet } from "../../model/fleet.ts";
import type { FaultyMachine, Follower, Phase } from "../../model/machine-report.ts";
import { podsOf } from "./absence.ts";
import type { EvidenceKind } from "./evidence.ts";
import type { Judged } from "./judge.ts";
import { FEW } from "./peer-group.ts";
import { deviationWords } from "./words.ts";

/** What a congested machine does to others. */
const SPREADS: readonly EvidenceKind[] = ["congestion", "network", "tcp"];
/**
 * What a machine that waits for another may show as well: its processes poll, what it cannot receive it pauses (Minder
 * §2.2), and it may be the one that writes the checkpoint. Beside a machine that shows what waiting does to nobody (a clock
 * that fell, a NIC that carries less) it is the lesser suspect, and none where nothing is left of it without what the other
 * did to the job.
 */
const OF_WAITING: readonly EvidenceKind[] = ["cpu", "congestion", "tcp"];
const LESSER = 0.7;
/** More of them are no faults but a kind of machine, or a role that nobody told us of. */
const MOST_SHARE = 0.25;

/** What spreads comes later, by more than sampling can blur, and weaker. */
const LATER_STEPS = 3;
const WEAKER = 1.2;
const SPREADS_WITHIN_S = 300;
/** Of a device whose samples stop while the job runs. */
const GOES_ON_SCORE = 0.28;
const HALTS_WITHIN_S = 90;

export function faultyMachines(
  fleet: Fleet,
  all: readonly Judged[],
  missing: string[],
  phases: readonly Phase[],
): { faulty: FaultyMachine[]; followers: Follower[] } {
  const judged = withoutKinds(fleet, withoutCrowds(fleet, all, missing), missing);
  const stepS = fleet.grids.reduce((step, grid) => Math.max(step, grid.stepS), 0);
  const byOnset = [...judged].sort((a, b) => a.fromS - b.fromS);
  const followers: Follower[] = [];
  const isLesser = (one: Judged, other: Judged): boolean =>
    overlap(one, other) &&
    // Whose samples alone are gone, in a job that runs, is no suspect that others wait for.
    !goesOn(other, phases) &&
    mayWait(one) &&
    !mayWait(other);
  const culprits = byOnset.filter((one) => {
    const source = byOnset.find(
      (other) => spreadTo(other, one, stepS) || (one.standsAlone === false && isLesser(one, other)),
    );
    if (!source) return true;
    followers.push({
      machine: fleet.machines[one.machine]!,
      metric: one.evidence[0]!.deviation.metric,
      sinceS: one.fromS,
      after: fleet.machines[source.machine]!,
    });
    return false;
  });
  let order = 0;
  let lastS = -Infinity;
  const faulty = culprits.map((one) => {
    // Within one sampling interval nobody can tell who was first.
    if (one.fromS - lastS > stepS) order++;
    lastS = one.fromS;
    const isBeside = culprits.some(
      (other) =>
        isLesser(one, other) ||
        (overlap(one, other) && !goesOn(other, phases) && isPhysical(other) && !isPhysical(one)),
    );
    const told = isBeside ? { ...one, score: LESSER * one.score } : one;
    return machineOf(fleet, told, order, goesOn(one, phases));
  });
  faulty.sort((a, b) => b.score - a.score || a.order - b.order);
  return { faulty, followers };
}

/** Many at the same time are no faults, but stages that nobody told us of, or something that the whole job does. */
function withoutCrowds(fleet: Fleet, judged: readonly Judged[], missing: string[]): Judged[] {
  const machines = fleet.machines.length;
  const isSilent = ({ kinds }: Judged): boolean => kinds.includes("absence");
  if (machines <= FEW || judged.length <= MOST_SHARE * machines) return [...judged];
  const crowd = new Set(
    judged.filter((one) => {
      const together = judged.filter((other) => overlap(one, other) && !isSilent(other));
      return !isSilent(one) && together.length > MOST_SHARE * machines;
    }),
  );
  if (crowd.size > 0) {
    missing.push(
      `${crowd.size} of ${machines} machines are unlike the rest at the same time: these are kinds of machines, or stages of the pipeline; give --job FILE with the job's layout`,
    );
  }
  return judged.filter((one) => !crowd.has(one));
}

function overlap(a: Judged, b: Judged): boolean {
  return a.fromS < (b.untilS ?? Infinity) && b.fromS < (a.untilS ?? Infinity);
}

/** Several that are alike among themselves and differ from the rest the whole time are another kind of machine. */
function withoutKinds(fleet: Fleet, judged: readonly Judged[], missing: string[]): Judged[] {
  const startS = fleet.grids.reduce((first, grid) => Math.min(first, grid.startS), Infinity);
  const isStanding = ({ fromS, untilS, evidence }: Judged): boolean =>
    untilS === null &&
    evidence.every(({ episode }) => {
      if (!episode) return false;
      const { metric, peers } = episode.view;
      return metric.harm === "both" && episode.fromS <= startS + 2 * peers.blocks.blockS;
    }) &&
    fromS <= startS + 60;
  const standing = judged.filter(isStanding);
  if (standing.length < 2) return [...judged];
  const names = standing.map(({ machine }) => fleet.machines[machine]!);
  const list = names.length > 4 ? `${names.slice(0, 4).join(", ")}, …` : names.join(" and ");
  missing.push(
    `${list} differ from the rest the whole time, and not to the worse: another kind of machine or stage; give --job FILE with the job's layout`,
  );
  return judged.filter((one) => !standing.includes(one));
}

/** A device that is gone stops a synchronous job. Where nothing but samples is missing and it runs, it may be there. */
function goesOn({ kinds, evidence, fromS }: Judged, phases: readonly Phase[]): boolean {
  const onlyDevices =
    kinds.every((kind) => kind === "absence") &&
    evidence.every((one) => one.deviation.metric !== "reporting");
  // A halt that comes minutes later has another reason.
  const isHalted = ({ what, fromS: haltS, toS }: Phase): boolean =>
    what === "halt" && toS > fromS && haltS <= fromS + HALTS_WITHIN_S;
  return onlyDevices && !phases.some(isHalted);
}

/** A counter, a state or silence that came when the job slowed down names a cause; what others do then may follow from it. */
function isPhysical({ evidence }: Judged): boolean {
  return evidence.some(
    ({ kind, decides, isHeldUp }) =>
      (kind === "state" || kind === "absence") && decides && isHeldUp === true,
  );
}

function mayWait({ evidence }: Judged): boolean {
  const longestS = evidence.reduce((most, { fromS, toS }) => Math.max(most, toS - fromS), 0);
  // What lasts for a moment beside it says nothing.
  return evidence.every(
    ({ kind, deviation, fromS, toS, isBusier }) =>
      (deviation.direction === "high" && (isBusier || OF_WAITING.includes(kind))) ||
      toS - fromS < MOMENT_SHARE * longestS,
  );
}

const MOMENT_SHARE = 0.25;

/** Whether the later one shows nothing but what the earlier one's trouble does to others. */
function spreadTo(first: Judged, later: Judged, stepS: number): boolean {
  if (!later.kinds.every((kind) => SPREADS.includes(kind))) return false;
  // Nobody else's trouble brings on what the first one shows beside it: it need not have been seen to be first.
  const isSource = first.kinds.some((kind) => !SPREADS.includes(kind));
  if (later.fromS - first.fromS <= (isSource ? -1 : 1) * LATER_STEPS * stepS) return false;
  // Only what is congested itself congests others, and while it is.
  if (!first.kinds.some((kind) => SPREADS.includes(kind)) || !overlap(first, later)) return false;
  if (later.fromS - first.fromS > SPREADS_WITHIN_S) return false;
  return first.kinds.length > later.kinds.length || strongest(first) >= WEAKER * strongest(later);
}

function strongest({ evidence }: Judged): number {
  return evidence.reduce((most, { strength }) => Math.max(most, strength), 0);
}

function machineOf(fleet: Fleet, judged: Judged, order: number, jobGoesOn: boolean): FaultyMachine {
  const { machine, evidence, fromS, untilS, score } = judged;
  const leading = [...evidence].sort(
    (a, b) => Number(b.decides) - Number(a.decides) || b.strength - a.strength,
  );
  const deviations = leading.map(({ deviation }) => deviation);
  const said = deviations.slice(0, 3).map(deviationWords);
  const more = deviations.length > 3 ? ` (and ${deviations.length - 3} more)` : "";
  const name = fleet.machines[machine]!;
  const where = podsOf(fleet).includes(name)
    ? "; of the machine that this exporter's pod runs on"
    : "";
  return {
    machine: name,
    metric: deviations[0]!.metric,
    score: jobGoesOn ? GOES_ON_SCORE : Math.round(score * 1000) / 1000,
    sinceS: fromS,
    untilS,
    role: fleet.roles[fleet.role[machine]!]!,
    order,
    why: `${said.join("; ")}${more}${where}${jobGoesOn ? "; the job goes on all the same: look at its exporter first" : ""}`,
    deviations,
  };
}
