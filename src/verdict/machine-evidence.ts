/**
 * What monitoring says of a machine, joined with what is known of its ranks. A rank that hangs on a machine whose
 * metrics are unlike its peers' is one trouble seen twice, not two.
 */
import type { Finding, VerdictKind } from "../model/finding.ts";
import type { Suspect } from "../model/verdict.ts";
import type { Hypothesis } from "./hypotheses.ts";
import { probabilityOf } from "./reliability.ts";

/** A machine's metrics name no rank: as support they count for less than as an accusation. */
const SUPPORT = 0.6;

export function joinMachines(ranked: readonly Hypothesis[]): Hypothesis[] {
  const machines = ranked.filter(({ kind }) => kind === "faulty-machine");
  let rest = ranked.filter(({ kind }) => kind !== "faulty-machine");
  const alone = machines.filter((machine) => {
    const on = rest.find(
      ({ ranks }) => ranks.length > 0 && ranks.every((rank) => machine.ranks.includes(rank)),
    );
    if (!on) return true;
    const given = machine.support.map((one) => ({ ...one, logTimes: SUPPORT * one.logTimes }));
    const odds = on.odds + given.reduce((sum, { logTimes }) => sum + logTimes, 0);
    const joined: Hypothesis = {
      ...on,
      odds,
      weight: Math.min(0.99, probabilityOf(odds)),
      support: [...on.support, ...given].sort((a, b) => b.logTimes - a.logTimes),
      why: `${on.why}; and ${machine.why}`,
      evidence: [...on.evidence, ...machine.evidence],
    };
    rest = rest.map((other) => (other === on ? joined : other));
    return false;
  });
  return [...rest, ...alone].sort((a, b) => b.odds - a.odds);
}

/** What the machine did to the job, where something else tells. */
export function kindOfMachineFault(withoutIt: VerdictKind): VerdictKind {
  return withoutIt === "hang" || withoutIt === "fail-slow" ? withoutIt : "faulty-machine";
}

/** "node003 is unlike its peers …" needs no rank. */
export function machineSentence(suspects: readonly Suspect[]): string {
  const [first, ...others] = suspects;
  const more = others.map(({ name }) => name).slice(0, 5);
  const list = others.length > more.length ? `${more.join(", ")}, …` : more.join(" and ");
  return `${first!.why}${more.length > 0 ? `; the same goes for ${list}` : ""}.`;
}

export function machineTimes(
  findings: readonly Finding[],
  suspects: readonly Suspect[],
): { from: string | null; to: string | null } {
  const ids = new Set(suspects[0]?.evidence);
  const data = findings.find(
    ({ id, method }) => ids.has(id) && method.startsWith("machines/"),
  )?.data;
  const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
  return { from: text(data?.["since"]), to: text(data?.["until"]) };
}
