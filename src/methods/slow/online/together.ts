/** What was found one by one and has one reason: ranks that are nearly all of a machine, wires that one rank is behind. */
import type { Candidate, Hypothesis } from "./hypotheses.ts";
import { COMMUNICATORS, type Kind, SENDERS } from "./kinds.ts";
import { machineOfMost } from "./machines.ts";

type Candidates = readonly Candidate[];

/** Whom it is about: of several communicators, who is in all of them. */
export function placesOf({ kind, items }: Hypothesis, kinds: readonly Kind[]): readonly number[] {
  if (kind !== COMMUNICATORS) return items;
  const [first = [], ...others] = items.map((item) => kinds[kind]!.placesOf(item));
  return first.filter((place) => others.every((places) => places.includes(place)));
}

/** `known`: what was named before. */
export function together(
  sure: Candidates,
  known: readonly Hypothesis[],
  machines: readonly (readonly number[])[],
  kinds: readonly Kind[],
): Candidates {
  return ofOneRank(ofOneMachine(sure, known, machines), known, kinds);
}

function ofOneMachine(
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

function ofOneRank(
  sure: Candidates,
  known: readonly Hypothesis[],
  kinds: readonly Kind[],
): Candidates {
  const isOver = ({ kind }: Hypothesis): boolean => kind === COMMUNICATORS;
  const over = sure.filter(isOver);
  const [first] = over;
  if (first === undefined) return sure;
  const rest = sure.filter((one) => !isOver(one));
  const senders = rest.flatMap(({ kind, items }) => (kind === SENDERS ? items : []));
  // Who sends slowly says more than what takes longer because of it.
  if (over.flatMap((one) => placesOf(one, kinds)).some((place) => senders.includes(place)))
    return rest;
  const items = [...over, ...known.filter(isOver)].flatMap((one) => one.items);
  const whole = { ...first, items, isOne: true };
  const hasReason = items.length > 1 && placesOf(whole, kinds).length > 0;
  return hasReason ? [...rest, whole] : sure;
}
