/** Which records of the library a line matches. */
import { getOrInsert } from "../base/group-by.ts";
import type { FaultRecord } from "../model/fault-record.ts";
import { Automaton } from "./automaton.ts";
import { isMention } from "./mention.ts";

export interface FaultMatch {
  readonly record: FaultRecord;
  readonly captures: Readonly<Record<string, string>>;
}

interface Compiled {
  readonly record: FaultRecord;
  readonly all: readonly string[];
  readonly any: readonly string[];
  readonly not: readonly string[];
  readonly regex: RegExp | null;
}

/** Longer lines carry nothing new; regular expressions see no more than this. */
const MOST_CHARS = 4000;
const DIGITS = /\d+/g;
/** "There are some potential root causes. (1) …": what is listed behind that may have happened, and mostly did not. */
const GUESSES =
  /\b(?:potential|possible|common|likely) (?:root )?(?:causes?|reasons?)\b|\bpossibly caused by\b/i;

export class FaultMatchers {
  readonly #compiled: readonly Compiled[];
  /** The first literal of every record; by literal the records that begin with it. */
  readonly #anchors: Automaton;
  readonly #byAnchor: readonly (readonly number[])[];
  /** The same with every run of digits made one 0. */
  readonly #shapeAnchors: Automaton;

  constructor(records: readonly FaultRecord[]) {
    this.#compiled = records.map((record) => ({
      record,
      all: record.match.all.map(lower),
      any: (record.match.any ?? []).map(lower),
      not: (record.match.not ?? []).map(lower),
      regex: record.match.regex === undefined ? null : new RegExp(record.match.regex, "i"),
    }));
    const byAnchor = new Map<string, number[]>();
    this.#compiled.forEach(({ all }, index) => {
      const anchor = all[0]!;
      getOrInsert(byAnchor, anchor, () => []).push(index);
    });
    this.#byAnchor = [...byAnchor.values()];
    this.#anchors = new Automaton([...byAnchor.keys()]);
    this.#shapeAnchors = new Automaton([...new Set([...byAnchor.keys()].map(digitless))]);
  }

  /** Whether a line of this shape may match: holds for every line that differs from it in digits only. */
  couldMatch(text: string): boolean {
    return this.#shapeAnchors.any(digitless(text));
  }

  /** All records that match, the most telling first. */
  match(text: string): FaultMatch[] {
    const line = text.length > MOST_CHARS ? text.slice(0, MOST_CHARS) : text;
    const candidates = new Set<number>();
    this.#anchors.scan(line, (anchor) => {
      for (const index of this.#byAnchor[anchor]!) candidates.add(index);
    });
    if (candidates.size === 0) return [];
    const folded = lower(line);
    const guesses = line.search(GUESSES);
    const matches: FaultMatch[] = [];
    for (const index of candidates) {
      const compiled = this.#compiled[index]!;
      const { record } = compiled;
      const end = guesses < 0 || record.category === null ? line.length : guesses;
      const captures = this.#verify(compiled, folded.slice(0, end), line.slice(0, end));
      if (captures && !isMentioned(compiled, folded, line)) matches.push({ record, captures });
    }
    return matches.length > 1 ? matches.sort(byTelling) : matches;
  }

  #verify(
    { all, any, not, regex }: Compiled,
    folded: string,
    line: string,
  ): Readonly<Record<string, string>> | null {
    if (!all.every((literal) => folded.includes(literal))) return null;
    if (any.length > 0 && !any.some((literal) => folded.includes(literal))) return null;
    if (not.some((literal) => folded.includes(literal))) return null;
    if (!regex) return {};
    const found = regex.exec(line);
    if (!found) return null;
    // Groups that took no part are there, and undefined.
    const given = Object.entries(found.groups ?? {}).filter(([, value]) => value !== undefined);
    return Object.fromEntries(given);
  }
}

/** A line may confirm and say what broke in one: then it says that, if it is as sure of it. */
export function mostTelling(matches: readonly FaultMatch[]): FaultMatch | null {
  const [first = null] = matches;
  if (first?.record.role !== "confirmation") return first;
  const { certainty } = first.record;
  const isAsSure = ({ record }: FaultMatch): boolean =>
    record.role === "root" && record.certainty >= certainty;
  return matches.find(isAsSure) ?? first;
}

function isMentioned({ record, all }: Compiled, folded: string, line: string): boolean {
  if (record.category === null) return false;
  const from = folded.indexOf(all[0]!);
  return isMention(line, from, from + all[0]!.length);
}

/** A record that asks for more of the line knows more of it; then the surer one. */
function byTelling(a: FaultMatch, b: FaultMatch): number {
  return (
    specificity(b.record) - specificity(a.record) ||
    b.record.certainty - a.record.certainty ||
    (a.record.id < b.record.id ? -1 : 1)
  );
}

function specificity({ match }: FaultRecord): number {
  return (
    match.all.reduce((sum, { length }) => sum + length, 0) +
    (match.any ? 6 : 0) +
    (match.regex ? 4 : 0)
  );
}

function lower(text: string): string {
  return text.toLowerCase();
}

function digitless(text: string): string {
  return text.replace(DIGITS, "0");
}
