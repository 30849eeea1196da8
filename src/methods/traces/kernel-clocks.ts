/**
 * How far the clocks of traced ranks are apart, from the kernels themselves: a collective ends on all members at once.
 * Pipeline stages often share no collective, so what these leave apart is joined by sends and receives: a receive ends no earlier than its send, in both directions,
 * and half of what the closest pairs differ by is the clocks' (as NTP does it).
 */
import { getOrInsert } from "../../base/group-by.ts";
import { smallest } from "../../base/numbers.ts";
import { apart, spreadOffsets, type Neighbours } from "../../maths/clock-offsets.ts";
import { median } from "../../maths/robust.ts";
import type { Rank } from "../../model/ids.ts";
import { COMMUNICATION, type RankKernels } from "../../model/kernels.ts";
import type { RankClock } from "../../model/trace-picture.ts";
import { stepAt, stepsOf } from "./steps.ts";

/** Ends by which a group is trusted. Traces are short: data-parallel groups may have a single collective a step. */
const FEWEST = 2;

/** What a collective or a message is known by on both sides → when it ended, nanoseconds since `epochNs`. */
type Ends = Map<string, number>;

interface RankEnds {
  readonly collectives: Map<string, Ends>;
  /** By "from>to". */
  readonly sends: Map<string, Ends>;
  readonly receives: Map<string, Ends>;
}

export function kernelClocks(traces: readonly (readonly [Rank, RankKernels])[]): RankClock[] {
  const epochNs = earliest(traces);
  const ends = new Map<Rank, RankEnds>();
  for (const [rank, trace] of traces) {
    const known = ends.get(rank) ?? {
      collectives: new Map<string, Ends>(),
      sends: new Map<string, Ends>(),
      receives: new Map<string, Ends>(),
    };
    ends.set(rank, known);
    collect(rank, trace, Number(trace.epochNs - epochNs), known);
  }
  const members = new Map<string, Rank[]>();
  for (const [rank, { collectives }] of ends)
    for (const group of collectives.keys())
      members.set(group, [...(members.get(group) ?? []), rank]);
  const own = spreadOffsets(ends.keys(), () => throughGroups(ends, members));
  const shifts = shiftsBetween(ends, (rank) => own.get(rank)!);
  const joined = new Map<Rank, Map<Rank, number>>();
  for (const [rank, { ahead, component }] of own) {
    const shift = shifts.get(component)!;
    getOrInsert(joined, shift.component, () => new Map<Rank, number>()).set(
      rank,
      ahead + shift.ahead,
    );
  }
  return [...joined].flatMap(([component, list]) => {
    const typical = median([...list.values()]);
    return [...list].map(([rank, ahead]) => ({ rank, aheadNs: ahead - typical, component }));
  });
}

/** The earliest of the traces' epochs: times since it are exact, and the same for all ranks. */
export function earliest(traces: readonly (readonly [Rank, RankKernels])[]): bigint {
  return traces.reduce(
    (least, [, { epochNs }]) => (epochNs < least ? epochNs : least),
    traces[0]?.[1].epochNs ?? 0n,
  );
}

function collect(rank: Rank, trace: RankKernels, shiftNs: number, known: RankEnds): void {
  const { gpu, calls, collectives, groups, names } = trace;
  const steps = stepsOf(trace);
  const counted = new Map<string, number>();
  for (let i = 0; i < gpu.count; i++) {
    const row = gpu.collective[i]!;
    const group = row < 0 ? undefined : groups[collectives.group[row]!];
    if (gpu.kind[i] !== COMMUNICATION || !group?.ranks) continue;
    const operation = names[collectives.operation[row]!]!;
    const peer = collectives.peer[row]!;
    const isP2p = /^(?:send|recv)$/.test(operation);
    if (isP2p && peer < 0) continue;
    const isSend = operation === "send";
    const pair = isSend ? `${rank}>${peer}` : `${peer}>${rank}`;
    const place = `${group.name}|${group.ranks.join()}`;
    // Without the group's own numbers: order within a step, so that traces may begin at different steps.
    const launch = gpu.launch[i]!;
    const step = stepAt(steps, launch < 0 ? gpu.startNs[i]! : calls.startNs[launch]!);
    if (step < 0) continue;
    const within = `${operation}|${steps.number[step]}`;
    const counter = `${isP2p ? pair : place}|${within}`;
    const order = counted.get(counter) ?? 0;
    counted.set(counter, order + 1);
    const seq = collectives.seq[row]!;
    // A message has the same place on both sides under different words.
    const what = isP2p
      ? `${steps.number[step]}#${order}`
      : Number.isNaN(seq)
        ? `${within}#${order}`
        : String(seq);
    const lists = isP2p ? (isSend ? known.sends : known.receives) : known.collectives;
    const key = isP2p ? pair : place;
    getOrInsert(lists, key, () => new Map<string, number>()).set(
      what,
      shiftNs + gpu.startNs[i]! + gpu.durNs[i]!,
    );
  }
}

function throughGroups(
  ends: ReadonlyMap<Rank, RankEnds>,
  members: ReadonlyMap<string, readonly Rank[]>,
): Neighbours {
  const passed = new Set<string>();
  return function* neighbours(rank, isKnown) {
    for (const [group, own] of ends.get(rank)!.collectives) {
      if (passed.has(group)) continue;
      passed.add(group);
      for (const member of members.get(group) ?? []) {
        if (isKnown(member)) continue;
        const differences = apart(own, ends.get(member)!.collectives.get(group)!);
        if (differences.length >= FEWEST) yield [member, median(differences)];
      }
    }
  };
}

type Own = (rank: Rank) => { readonly ahead: number; readonly component: number };

/** Components of collectives as nodes, joined by the messages between their ranks. */
function shiftsBetween(ends: ReadonlyMap<Rank, RankEnds>, own: Own) {
  const links = new Map<Rank, Map<Rank, number[]>>();
  const add = (from: Rank, to: Rank, ahead: number): void => {
    const ofFrom = getOrInsert(links, from, () => new Map<Rank, number[]>());
    getOrInsert(ofFrom, to, () => []).push(ahead);
  };
  for (const [from, { sends }] of ends) {
    for (const pair of sends.keys()) {
      const to = Number(pair.slice(pair.indexOf(">") + 1));
      const [a, b] = [own(from), ends.has(to) ? own(to) : null];
      if (!b || a.component === b.component) continue;
      // The other direction sees this pair itself.
      if (from > to && ends.get(to)!.sends.has(`${to}>${from}`)) continue;
      const ahead = aheadByMessages(ends.get(from)!, ends.get(to)!, pair, `${to}>${from}`);
      if (Number.isNaN(ahead)) continue;
      add(a.component, b.component, ahead - (b.ahead - a.ahead));
      add(b.component, a.component, b.ahead - a.ahead - ahead);
    }
  }
  const components = new Set([...ends.keys()].map((rank) => own(rank).component));
  return spreadOffsets(
    components,
    () =>
      function* neighbours(component, isKnown) {
        for (const [other, list] of links.get(component) ?? [])
          if (!isKnown(other)) yield [other, median(list)];
      },
  );
}

/** How far the clock of the second rank is ahead of the first's; NaN where no message was seen by both. */
function aheadByMessages(a: RankEnds, b: RankEnds, there: string, back: string): number {
  const least = (sent: Ends | undefined, received: Ends | undefined): number =>
    sent && received ? smallest(apart(sent, received), Infinity) : Infinity;
  const atMost = least(a.sends.get(there), b.receives.get(there));
  const atLeast = -least(b.sends.get(back), a.receives.get(back));
  if (Number.isFinite(atMost) && Number.isFinite(atLeast)) return (atMost + atLeast) / 2;
  return Number.isFinite(atMost) ? atMost : Number.isFinite(atLeast) ? atLeast : NaN;
}
