/**
 * Compares what ranks do, not how far they are. Ranks of one stage run the same sequence of operators;
 * the one that skips, adds, swaps or changes a call is out of step with all the others, and with its
 * own earlier iterations. This is what tells the culprit of a collective mismatch from its partners:
 * in a group of two, the operator alone cannot.
 */
import type { Rank } from "../../model/ids.ts";
import type { Job, RankDump } from "../../model/job.ts";

/** Two ranks compared from the first operator of a common group that both still have on record. */
interface Comparison {
  readonly a: Rank;
  readonly b: Rank;
  /** Operators that agree before the first difference (or before one of them ends). */
  readonly agreed: number;
  /** Where they differ, as operator indices; null where one is simply shorter. */
  readonly differ: { readonly a: number; readonly b: number } | null;
}

export class Programs {
  readonly #job: Job;
  readonly #withSizes: boolean;
  readonly #tokens = new Map<Rank, Int32Array>();
  readonly #ids = new Map<string, number>();
  readonly #words: string[] = [];
  /** By token: role and size of the group that it is called in. */
  readonly #kinds: string[] = [];
  readonly #kindsOf = new Map<Rank, ReadonlySet<string>>();

  constructor(job: Job, withSizes: boolean) {
    this.#job = job;
    this.#withSizes = withSizes;
  }

  /** "TENSOR_PARALLEL all_reduce" */
  word(rank: Rank, op: number): string {
    return this.#words[this.tokens(rank)[op]!] ?? "nothing";
  }

  /** One number an operator: equal numbers, equal role of the group and kind of operator. */
  tokens(rank: Rank): Int32Array {
    const known = this.#tokens.get(rank);
    if (known) return known;
    const dump = this.#job.dumps.get(rank);
    const tokens = dump ? this.#tokenise(dump) : new Int32Array(0);
    this.#tokens.set(rank, tokens);
    return tokens;
  }

  #tokenise({ dump, groupIds }: RankDump): Int32Array {
    const { ops } = dump;
    const tokens = new Int32Array(ops.count);
    const seen = new Map<number, number>();
    for (let i = 0; i < ops.count; i++) {
      const size =
        this.#withSizes && hasEqualSizes(ops.names[ops.name[i]!]!) ? ops.inputNumel[i]! : 0;
      const packed = (ops.group[i]! * 4096 + ops.name[i]!) * 64 + (ops.dtype[i]! + 1);
      let id = size === 0 ? seen.get(packed) : undefined;
      if (id === undefined) {
        const group = this.#job.groups[groupIds[ops.group[i]!]!];
        const dtype = ops.dtypes[ops.dtype[i]!] ?? "";
        const kind = `${group?.role} of ${group?.ranks.length}`;
        const text = `${kind} ${ops.names[ops.name[i]!]} ${dtype}${size ? ` ${size}` : ""}`;
        id = this.#ids.get(text);
        if (id === undefined) {
          id = this.#ids.size;
          this.#ids.set(text, id);
          this.#kinds.push(kind);
          this.#words.push(
            `${group?.role ?? "?"} ${ops.names[ops.name[i]!]}${size ? ` of ${size} elements` : ""}`,
          );
        }
        if (size === 0) seen.set(packed, id);
      }
      tokens[i] = id;
    }
    return tokens;
  }

  /** Compares two ranks, if they run the same program; null where that is unknown. */
  compare(a: Rank, b: Rank, group: number): Comparison | null {
    const start = this.#anchor(a, b, group);
    if (!start) return null;
    const left = this.tokens(a);
    const right = this.tokens(b);
    const [kindsOfA, kindsOfB] = [this.#groupKinds(a), this.#groupKinds(b)];
    let [i, j, agreed] = [start.a, start.b, 0];
    for (; ; agreed++) {
      i = this.#nextCommon(left, i, kindsOfB);
      j = this.#nextCommon(right, j, kindsOfA);
      if (i >= left.length || j >= right.length || left[i] !== right[j]) break;
      i++;
      j++;
    }
    const ended = i >= left.length || j >= right.length;
    // Ranks of different stages agree for a while (their gradient all-reduces); ranks of one stage
    // agree for longer than the group's operators ever lie apart, that is over iterations.
    if (agreed < Math.max(MIN_AGREED, 1.5 * start.longestGap)) return null;
    const differ = ended ? null : { a: i, b: j };
    return { a, b, agreed, differ };
  }

  /**
   * What a rank calls in a group of a kind that the other is in none of is no part of what they have in common: a trainer
   * that also hands its weights to the engines, a stage's first rank that also talks to the others'.
   */
  #nextCommon(tokens: Int32Array, from: number, kinds: ReadonlySet<string>): number {
    let at = from;
    while (at < tokens.length && !kinds.has(this.#kinds[tokens[at]!]!)) at++;
    return at;
  }

  #groupKinds(rank: Rank): ReadonlySet<string> {
    let kinds = this.#kindsOf.get(rank);
    if (!kinds) {
      const own = this.#job.groups.filter(({ ranks }) => ranks.includes(rank));
      kinds = new Set(own.map(({ role, ranks }) => `${role} of ${ranks.length}`));
      this.#kindsOf.set(rank, kinds);
    }
    return kinds;
  }

  /** First collective of the group that both ranks still have on record. */
  #anchor(a: Rank, b: Rank, group: number): { a: number; b: number; longestGap: number } | null {
    const left = this.#positions(a, group);
    const right = this.#positions(b, group);
    if (left.seqs.length === 0 || right.seqs.length === 0) return null;
    const seq = Math.max(left.seqs[0]!, right.seqs[0]!);
    const i = left.seqs.indexOf(seq);
    const j = right.seqs.indexOf(seq);
    if (i < 0 || j < 0) return null;
    return {
      a: left.ops[i]!,
      b: right.ops[j]!,
      longestGap: Math.min(longestGap(left.ops, i), longestGap(right.ops, j)),
    };
  }

  #positions(rank: Rank, group: number): { seqs: number[]; ops: number[] } {
    const seqs: number[] = [];
    const at: number[] = [];
    const dump = this.#job.dumps.get(rank);
    if (dump) {
      const { ops } = dump.dump;
      for (let i = 0; i < ops.count; i++) {
        if (ops.isP2p[i] || dump.groupIds[ops.group[i]!] !== group) continue;
        seqs.push(ops.seq[i]!);
        at.push(i);
      }
    }
    return { seqs, ops: at };
  }

  /**
   * Whether the operator is what the rank's own past leads to expect: the longest context that came
   * before, at its latest earlier occurrence. null where the past does not tell.
   */
  expectedByOwnPast(rank: Rank, op: number): boolean | null {
    const tokens = this.tokens(rank);
    const context = Math.min(PAST_CONTEXT, op);
    if (context < MIN_AGREED) return null;
    for (let end = op - 1; end >= context; end--) {
      let same = 0;
      while (same < context && tokens[end - 1 - same] === tokens[op - 1 - same]) same++;
      if (same === context) return tokens[end] === tokens[op];
    }
    return null;
  }
}

const MIN_AGREED = 8;
const PAST_CONTEXT = 24;

function longestGap(positions: readonly number[], from: number): number {
  let longest = 0;
  for (let i = from + 1; i < positions.length; i++) {
    longest = Math.max(longest, positions[i]! - positions[i - 1]!);
  }
  return longest;
}

/** Collectives whose inputs must have one size on all ranks. */
export function hasEqualSizes(name: string): boolean {
  return (
    /all_?reduce|broadcast|^reduce|all_?gather|reduce_?scatter|allreduce/i.test(name) &&
    !/coalesced|all_?to_?all/i.test(name)
  );
}
