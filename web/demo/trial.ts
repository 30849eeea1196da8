/** One thing that was broken: the truth, when the service named somebody, and whether it was right. */
import { rankWords } from "../../src/base/text.ts";
import type { DemoFault, DemoState, Incident } from "../live/api.ts";

export type Broken = DemoState["faults"][number];

export interface Trial {
  readonly fault: Broken;
  /** null while nobody is named. */
  readonly found: Found | null;
  readonly isFixed: boolean;
}

export interface Found {
  readonly incident: string;
  readonly afterMs: number;
  /** Whether it may have been sooner: the page came when it was found already. */
  readonly isAtMost: boolean;
  readonly isRight: boolean;
  /** "rank 17, gpu-slow"; "named rank 16 instead" */
  readonly says: string;
}

/** What a right verdict calls it. */
const CAUSES: Readonly<Record<DemoFault["kind"], string>> = {
  gpu: "gpu-slow",
  link: "network-slow",
  nic: "network-slow",
  "data-loader": "dataloader",
  machine: "process-gone",
};

/** Of all that is broken now, in the order of breaking, after what was broken with it and is fixed. */
export function nextTrials(
  last: readonly Trial[],
  state: DemoState,
  incidents: ReadonlyMap<string, Incident>,
): readonly Trial[] {
  const { faults } = state;
  const isNow = ({ fault }: Trial): boolean => faults.some((one) => isSameFault(one, fault));
  const isNew = faults.some((one) => !last.some(({ fault }) => isSameFault(one, fault)));
  const over = last
    .filter((one) => !isNow(one) && !(isNew && (one.isFixed || faults.length === 1)))
    .map((one) => (one.isFixed ? one : { ...one, isFixed: true }));
  const now = faults.flatMap((fault) => {
    const before = last.find((one) => isSameFault(one.fault, fault)) ?? null;
    // What is the right answer to another fault is none to this one.
    const taken = new Set(
      last.flatMap(({ fault: other, found }) =>
        found?.isRight && !isSameFault(other, fault) ? [found.incident] : [],
      ),
    );
    const others = new Map([...incidents].filter(([id]) => !taken.has(id)));
    return nextTrial(before, { ...state, faults: [fault] }, others) ?? [];
  });
  const next = [...over, ...now];
  return next.length === last.length && next.every((one, i) => one === last[i]) ? last : next;
}

function isSameFault(a: Broken, b: Broken): boolean {
  return a.id === b.id && a.sinceMs === b.sinceMs;
}

export function nextTrial(
  last: Trial | null,
  state: DemoState,
  incidents: ReadonlyMap<string, Incident>,
): Trial | null {
  const [fault] = state.faults;
  if (!fault) {
    if (last === null || last.isFixed) return last;
    return { ...last, isFixed: true };
  }
  const isSame = last?.fault.id === fault.id && last.fault.sinceMs === fault.sinceMs;
  // The first name counts, as for somebody who waits for it; unless it is put right while the fault lasts.
  if (isSame && last.found?.isRight) return last.isFixed ? { ...last, isFixed: false } : last;
  const named = foundIn(fault, state.job, incidents);
  const found = named && { ...named, isAtMost: !isSame };
  if (isSame && sameWords(found, last.found)) return last;
  return { fault, found: found ?? (isSame ? last.found : null), isFixed: false };
}

function sameWords(a: Found | null, b: Found | null): boolean {
  return a?.incident === b?.incident && a?.says === b?.says;
}

/** The first that is right; where none is, the first that names somebody. */
function foundIn(
  fault: Broken,
  job: string,
  incidents: ReadonlyMap<string, Incident>,
): Omit<Found, "isAtMost"> | null {
  const named = [...incidents.values()]
    .filter((one) => one.job === job && namedMs(one) >= fault.sinceMs)
    .filter(({ state }) => state === "confirmed" || state === "relapsed")
    .toSorted((a, b) => namedMs(a) - namedMs(b))
    .flatMap((one) => {
      const { id, verdict } = one;
      if (!verdict) return [];
      const afterMs = namedMs(one) - fault.sinceMs;
      return [{ incident: id, afterMs, ...judge(fault, verdict) }];
    });
  return named.find(({ isRight }) => isRight) ?? named[0] ?? null;
}

/** Later revisions say more of whom the first one named. */
function namedMs({ namedMs: firstMs, changedMs }: Incident): number {
  return firstMs ?? changedMs;
}

/** Against the truth: the place first, then the cause. */
export function judge(
  fault: Broken,
  verdict: NonNullable<Incident["verdict"]>,
): { readonly isRight: boolean; readonly says: string } {
  const [suspect] = verdict.suspects;
  if (!suspect) return { isRight: false, says: "no suspect was named" };
  const { ranks, machine, cause, type } = suspect;
  const isWhole = fault.kind === "machine" && machine !== null;
  const who = isWhole
    ? machine.slice(0, 80)
    : type === "link" && ranks.length === 2
      ? `link of ${rankWords(ranks)}`
      : ranks.length > 0
        ? rankWords(ranks.slice(0, 1000))
        : (machine ?? "somebody").slice(0, 80);
  const isThere = isWhole
    ? machine === fault.machine
    : ranks.length > 0 && ranks.every((rank) => fault.ranks.includes(rank));
  const isPlace = isThere && (fault.kind !== "link" || type === "link");
  if (!isPlace) return { isRight: false, says: `named ${who} instead` };
  if (cause !== CAUSES[fault.kind])
    return { isRight: false, says: `named ${who}, but as ${cause}` };
  return { isRight: true, says: `${who}, ${cause}` };
}
