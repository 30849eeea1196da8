/** What was found one by one and has one reason: ranks that are nearly all of a machine, wires that one rank is behind. */
import type { Candidate, Hypothesis } from "./hypotheses.ts";
import { COMMUNICATORS, type Kind, SENDERS } from "./kinds.ts";
import { machineOfMost } from "./machines.ts";

type Candidates = readonly Candidate[];

/** Whom it is about: of several communicators who is in all of them, else the members of the slowest. */
export function placesOf({ kind, items }: Hypothesis, kinds: readonly Kind[]): readonly number[] {
  if (kind !== COMMUNICATORS) return items.toSorted((a, b) => a - b);
  const [first = [], ...others] = items.map((item) => kinds[kind]!.placesOf(item));
  const common = first.filter((place) => others.every((places) => places.includes(place)));
  return common.length > 0 ? common : first;
}

/** `known`: what was named before. */
export function ofOneMachine(
  sure: Candidates,
  known: readonly Hypothesis[],
  machines: readonly (readonly number[])[],
): Candidates {
  const isRank = ({ type, shape }: Hypothesis): boolean => type === "rank" && shape === "lasting";
  const all = [...sure, ...known].filter(isRank);
  const places =
    machines[machineOfMost(machines, new Set(all.flatMap(({ items }) => items)))] ?? [];
  const isIn = (one: Hypothesis): boolean => isRank(one) && places.includes(one.items[0]!);
  const last = sure.find(isIn);
  if (last === undefined) return sure;
  const since = Math.min(...all.filter(isIn).map((one) => one.since));
  const whole = { ...last, type: "machine" as const, items: places, isOne: true, since };
  return [whole, ...sure.filter((one) => !isIn(one))];
}

/** Who sends slowly, and what takes longer because of it, are one thing. */
export function ofOneWire(candidates: Candidates, kinds: readonly Kind[]): Candidates {
  const sender = candidates.find(({ kind, log }) => kind === SENDERS && log > 0);
  const isEffect = (one: Hypothesis): boolean =>
    one.kind === COMMUNICATORS &&
    one.items.some((group) =>
      kinds[COMMUNICATORS]!.placesOf(group).some((place) => sender?.items.includes(place)),
    );
  const effect = candidates.find(isEffect);
  if (sender === undefined || effect === undefined) return candidates;
  const both = { ...sender, probability: sender.probability + effect.probability };
  return [both, ...candidates.filter((one) => one !== sender && one !== effect)];
}
