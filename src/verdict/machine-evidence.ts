/**
 * What monitoring says of a machine, joined with what is known of its ranks. A rank that hangs on a machine whose
 * metrics are unlike its peers' is one trouble seen twice, not two.
 */
import type { Cause } from "../model/cause.ts";
import { SUREST } from "./case.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { decidedBy } from "./possible-causes.ts";
import { probabilityOf } from "./reliability.ts";

/** A machine's metrics name no rank: as support they count for less than as an accusation. */
const SUPPORT = 0.6;

export function joinMachines(ranked: readonly Hypothesis[]): Hypothesis[] {
  const machines = ranked.filter(({ kind }) => kind === "faulty-machine");
  let rest = ranked.filter(({ kind }) => kind !== "faulty-machine");
  const alone: Hypothesis[] = [];
  for (const machine of machines) {
    const on = rest.find((other) => isOn(other, machine));
    const ring = on ? undefined : rest.find((other) => isRingThrough(other, machine));
    const joined = on ? supported(on, machine) : ring ? partOf(ring, machine) : null;
    if (joined) rest = rest.map((other) => (other === (on ?? ring) ? joined : other));
    else alone.push(machine);
  }
  return [...rest, ...alone].sort((a, b) => b.odds - a.odds);
}

/** The machine's part of the ring. */
function partOf(ring: Hypothesis, machine: Hypothesis): Hypothesis {
  const ranks = ring.ranks.filter((rank) => machine.ranks.includes(rank));
  const type = machine.cause === "network-slow" ? "nic" : machine.type;
  const [base, by] = ring.isJudged ? [ring, machine] : [machine, ring];
  const { link, name } = machine;
  return supported({ ...base, kind: ring.kind, type, ranks, link, name }, by);
}

/** Ranks of the machine; or a link that ends there, whose trouble is counted by the NICs at its ends. */
function isOn({ type, ranks, cause }: Hypothesis, machine: Hypothesis): boolean {
  if (ranks.length === 0) return false;
  if (type === "link" && cause === machine.cause && cause === "network-slow")
    return ranks.some((rank) => machine.ranks.includes(rank));
  return ranks.every((rank) => machine.ranks.includes(rank));
}

/**
 * Operators name the ring that is slow, or the group in which all are stuck; monitoring a machine or a device that has part
 * in it: then it is that part.
 */
function isRingThrough({ kind, type, ranks, cause }: Hypothesis, machine: Hypothesis): boolean {
  const part = ranks.filter((rank) => machine.ranks.includes(rank)).length;
  if (ranks.length <= 2 || part === 0 || part === ranks.length) return false;
  if (kind === "hang") return STUCK.includes(cause) && STUCK.includes(machine.cause);
  return (
    (type === "nic" || type === "link") &&
    cause === "network-slow" &&
    machine.cause === "network-slow"
  );
}

/** All members of a group are inside an operator and none leaves: which of these it is, the operators do not tell. */
const STUCK: readonly Cause[] = ["gpu-hang", "network-hang"];

function supported(on: Hypothesis, by: Hypothesis): Hypothesis {
  const given = by.support.map((one) => ({ ...one, logTimes: SUPPORT * one.logTimes }));
  const odds = on.odds + given.reduce((sum, { logTimes }) => sum + logTimes, 0);
  const isUndecided = on.cause === "unknown" || on.causes.length > 1;
  const causes = isUndecided ? decidedBy(on.causes, on.kind, by.cause) : on.causes;
  return {
    ...on,
    causes,
    cause: causes[0]!.cause,
    odds,
    weight: on.isJudged ? on.weight : Math.min(SUREST, probabilityOf(odds)),
    support: [...on.support, ...given].sort((a, b) => b.logTimes - a.logTimes),
    why: `${on.why}; and ${by.why}`,
    evidence: [...on.evidence, ...by.evidence],
    methods: [...on.methods, ...by.methods],
  };
}
