/** Which communicator's sequence numbers count the iterations of a rank, and how. */
import {
  type CallClass,
  type CallSequence,
  P2P,
} from "../../../methods/iterations/call-classes.ts";
import type { Endings } from "../../../methods/iterations/call-segments.ts";
import type { CallView, CallWindow } from "./call-window.ts";
import type { RankGroups } from "../rank-groups.ts";

export class Counter {
  readonly #group: number;
  readonly #ofTransfers: boolean;
  /** Calls of one repetition of the pattern, repetitions of an iteration, and which of them ends it. */
  readonly #each: number;
  readonly #repetitions: number;
  readonly #phase: number;

  constructor(
    group: number,
    ofTransfers: boolean,
    each: number,
    repetitions: number,
    phase: number,
  ) {
    this.#group = group;
    this.#ofTransfers = ofTransfers;
    this.#each = each;
    this.#repetitions = repetitions;
    this.#phase = phase;
  }

  /** Whether a call of this class moves the sequence number on. */
  counts({ group, kind }: CallClass): boolean {
    return group === this.#group && (kind === P2P) === this.#ofTransfers;
  }

  /** Whether the repetition that ends at this sequence number ends an iteration. */
  isEnd(seq: number): boolean {
    return Math.floor(seq / this.#each) % this.#repetitions === this.#phase;
  }

  numberOf(seq: number): number {
    return Math.floor(seq / (this.#each * this.#repetitions));
  }

  name(groups: RankGroups, seq: number): string {
    const key = groups.list[groups.indexOf(this.#group)]?.key ?? `${this.#group}`;
    return `${key} ${seq % this.#each} ${this.#each}`;
  }
}

/** The largest communicator that the rank calls in every iteration; of equal ones, that of its gradients. */
export function chooseCounter(
  window: CallWindow,
  view: CallView,
  calls: CallSequence,
  { endings, repetitions }: Endings,
  groups: RankGroups,
): Counter | null {
  const { segment } = endings.at(-1)!;
  const { pattern, anchor } = segment;
  const classes = window.classesOf(view);
  const p2pOnly = pattern.every((symbol) => classes[symbol]!.kind === P2P);
  const perGroup = new Map<number, number>();
  for (const symbol of pattern) {
    const { group, kind } = classes[symbol]!;
    // A record that was lost belongs to no communicator.
    if (symbol === 0 || (kind === P2P) !== p2pOnly) continue;
    perGroup.set(group, (perGroup.get(group) ?? 0) + 1);
  }
  const marked = classes[anchor.marker]!.group;
  const worth = (group: number): number => 2 * groups.sizeOf(group) + (group === marked ? 1 : 0);
  const [chosen] = [...perGroup].sort(
    ([a, many], [b, more]) => worth(b) - worth(a) || more - many || a - b,
  );
  if (chosen === undefined) return null;
  const [group, each] = chosen;
  const counter = new Counter(group, p2pOnly, each, repetitions, 0);
  // Where only the clock tells which repetition ends an iteration, the numbers do from then on.
  const phases = new Map<number, number>();
  let [seq, at] = [NaN, 0];
  for (const { call } of endings) {
    for (; at <= call; at++)
      if (counter.counts(classes[calls.symbols[at]!]!)) seq = window.seq(calls.ops[at]!);
    if (Number.isNaN(seq)) continue;
    const phase = Math.floor(seq / each) % repetitions;
    phases.set(phase, (phases.get(phase) ?? 0) + 1);
  }
  const [phase] = [...phases].sort(([a, many], [b, more]) => more - many || a - b);
  if (phase === undefined) return null;
  return new Counter(group, p2pOnly, each, repetitions, phase[0]);
}
