/**
 * The iterations of a rank, found in the calls of its native ring (Greyhound §4.1): no mark of a framework and no log line
 * is needed. The period finder that reads recordings (methods/iterations) learns from a window of calls how an iteration
 * ends; from then on every call is compared with that end as it comes, so that following costs next to nothing.
 *
 * The number of an iteration is how often the calls of one fit into the sequence number of a communicator, the largest in
 * which the rank calls in every iteration. All members of the communicator count the same, on every machine, whenever an
 * agent was started. It may differ by a few from what a log prints, because initialisation calls, too.
 */
import { chooseCounter, type Counter } from "./call-counter.ts";
import { type CallView, CallWindow, VIEWS } from "./call-window.ts";
import type { RingFollower } from "../rings/follow-ring.ts";
import type { RankGroups } from "../rank-groups.ts";
import { findEndings } from "../../../methods/iterations/call-segments.ts";

/** Calls at the first search; each further search takes twice as many. */
const FIRST_SEARCH = 32;
/** Calls between two searches at most. */
const SEARCH_EVERY = 1 << 14;
/** What is learnt from so few calls may be a layer of a large model: more calls, or so much time, must confirm it. */
const FEW_CALLS = 4;
const SURE_CALLS = 1024;
const SURE_NS = 20e9;
/** Iterations without an end after which another end is looked for. */
const LOST_ITERATIONS = 4;
const MOST_ENDS = 1024;

/** An iteration that ended. */
export interface CalledIteration {
  readonly iteration: number;
  /** Monotonic nanoseconds. */
  readonly issuedNs: number;
  readonly endedNs: number;
  /** Ranks with the same text count alike: key of the communicator, and where in its calls the iteration ends. */
  readonly counter: string;
}

interface Learnt {
  readonly view: CallView;
  /** Calls of an iteration that count in the view, and all of them. */
  readonly period: number;
  readonly calls: number;
  /** Classes of one period, sorted: equal for all rotations. */
  readonly content: Int32Array;
  /** A call of the step: it counts the iterations where an end is lost to a foreign call. */
  readonly marker: number;
  readonly markers: number;
  readonly gram: Int32Array;
  readonly counter: Counter;
}

export class CalledIterations {
  readonly #window = new CallWindow();
  /** All calls ever read; the window holds the last of them. */
  #calls = 0;
  #searchAt = FIRST_SEARCH;
  #learnt: Learnt | null = null;
  #isConfirmed = false;
  /** The next call that is compared, counted over all calls. */
  #cursor = 0;
  /** The first call behind the last end, counted over all calls. */
  #endedAt = 0;
  /** The last classes, as many as the end has. */
  #tail = new Int32Array(0);
  #tailAt = 0;
  #lastSeq = NaN;
  #markers = 0;
  /** The last call ended an iteration: the moment is that of the next. */
  #isEnd = false;
  #last: { readonly number: number; readonly endNs: number } | null = null;
  #ends: CalledIteration[] = [];

  /** Whether it is known how iterations end. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  read(follower: RingFollower, groups: RankGroups): void {
    const before = this.#window.length;
    const moved = this.#window.read(follower, (communicator) => groups.sizeOf(communicator));
    this.#calls += this.#window.length + moved - before;
    if (this.#isConfirmed) this.#follow(groups);
  }

  /** Ends since the last call, oldest first. */
  take(): readonly CalledIteration[] {
    const ends = this.#ends;
    this.#ends = [];
    return ends;
  }

  /** While few calls were seen, what was learnt is looked at again; later only where ends no longer come. */
  get isSearchDue(): boolean {
    if (this.#calls < this.#searchAt) return false;
    return !this.#isConfirmed || this.#isLost || this.#calls <= SEARCH_EVERY;
  }

  /** Looks for the end of an iteration in the calls at hand; how many calls were looked at. */
  search(groups: RankGroups): number {
    const isLost = this.#isLost;
    // What came before the last end repeats something else.
    const oldest = this.#calls - this.#window.length;
    const from = isLost ? Math.max(0, this.#endedAt - oldest) : 0;
    const many = this.#window.length - from;
    this.#searchAt = this.#calls + Math.min(Math.max(FIRST_SEARCH, many), SEARCH_EVERY);
    const found = this.#find(from, groups);
    const known = this.#learnt;
    if (found === null) return many;
    if (known === null || !this.#isConfirmed) {
      // Confirmed where half as many calls say the same.
      const half = known ?? this.#find(from + (many >> 1), groups);
      if (half !== null && isSame(found, half) && this.#isEnough(found, from))
        this.#begin(half, from, groups);
      else this.#learnt = found;
    } else if (isLost ? this.#replaces(found, known, many) : found.period > known.period)
      this.#begin(found, from, groups);
    return many;
  }

  get #isLost(): boolean {
    if (this.#learnt === null || !this.#isConfirmed) return false;
    return this.#calls - this.#endedAt > LOST_ITERATIONS * this.#learnt.calls;
  }

  #find(from: number, groups: RankGroups): Learnt | null {
    for (const view of VIEWS) {
      const calls = this.#window.sequence(from, view);
      const found = findEndings(calls);
      if (found === null || found.endings.length < 2) continue;
      const { segment } = found.endings.at(-1)!;
      const { gram, marker, markersPerIteration } = segment.anchor;
      const counter = chooseCounter(this.#window, view, calls, found, groups);
      if (counter === null) continue;
      const content = Int32Array.from(segment.pattern).sort();
      const period = segment.period * found.repetitions;
      const share = calls.symbols.length / (this.#window.length - from);
      const markers = markersPerIteration * found.repetitions;
      return { view, period, calls: period / share, content, marker, markers, gram, counter };
    }
    return null;
  }

  #isEnough({ content }: Learnt, from: number): boolean {
    if (content.length > FEW_CALLS || this.#window.length - from >= SURE_CALLS) return true;
    return this.#window.timeNs(this.#window.length - 1) - this.#window.timeNs(from) >= SURE_NS;
  }

  /** A long evaluation repeats its passes, too: what replaces training has its mark, or all its calls and more. */
  #replaces(found: Learnt, known: Learnt, many: number): boolean {
    if (found.view !== known.view || many >= SEARCH_EVERY) return true;
    if (found.content.includes(known.marker)) return true;
    const theirs = new Set(found.content);
    return known.content.every((symbol) => theirs.has(symbol));
  }

  /** Ends are looked for from the first call of the window that was searched. */
  #begin(learnt: Learnt, from: number, groups: RankGroups): void {
    this.#learnt = learnt;
    this.#isConfirmed = true;
    this.#tail = new Int32Array(learnt.gram.length).fill(-1);
    this.#tailAt = 0;
    this.#lastSeq = NaN;
    this.#markers = 0;
    this.#isEnd = false;
    const firstNs = this.#window.timeNs(from);
    if (this.#last !== null && this.#last.endNs >= firstNs) this.#ends.length = 0;
    this.#last = null;
    this.#cursor = this.#calls - this.#window.length + from;
    this.#endedAt = this.#cursor;
    this.#follow(groups);
  }

  #follow(groups: RankGroups): void {
    const { view, counter, gram, marker } = this.#learnt!;
    const classes = this.#window.classesOf(view);
    const oldest = this.#calls - this.#window.length;
    for (let i = Math.max(0, this.#cursor - oldest); i < this.#window.length; i++) {
      const symbol = this.#window.symbolAt(i, view);
      if (symbol < 0) continue;
      if (this.#isEnd) this.#end(i, groups);
      if (symbol === marker) this.#markers++;
      if (counter.counts(classes[symbol]!)) this.#lastSeq = this.#window.seq(i);
      this.#tail[this.#tailAt] = symbol;
      this.#tailAt = (this.#tailAt + 1) % gram.length;
      this.#isEnd = symbol === gram.at(-1) && this.#isGram(gram) && counter.isEnd(this.#lastSeq);
    }
    this.#cursor = this.#calls;
  }

  #isGram(gram: Int32Array): boolean {
    for (let k = 0; k < gram.length; k++)
      if (this.#tail[(this.#tailAt + k) % gram.length] !== gram[k]) return false;
    return true;
  }

  /** `next`: the call behind the end, which is the first of another iteration. */
  #end(next: number, groups: RankGroups): void {
    const { counter, markers } = this.#learnt!;
    const endedNs = this.#window.timeNs(next);
    const number = counter.numberOf(this.#lastSeq);
    const many = Math.max(1, Math.round(this.#markers / markers));
    const last = this.#last;
    this.#last = { number, endNs: endedNs };
    this.#endedAt = this.#calls - this.#window.length + next;
    this.#markers = 0;
    this.#isEnd = false;
    if (last === null || number <= last.number || endedNs <= last.endNs) return;
    const issuedNs = endedNs - (endedNs - last.endNs) / many;
    const of = counter.name(groups, this.#lastSeq);
    this.#ends.push({ iteration: number, issuedNs, endedNs, counter: of });
    if (this.#ends.length > MOST_ENDS) this.#ends.splice(0, MOST_ENDS / 2);
  }
}

function isSame(a: Learnt, b: Learnt): boolean {
  return (
    a.view === b.view &&
    a.period === b.period &&
    a.content.length === b.content.length &&
    a.content.every((symbol, i) => symbol === b.content[i])
  );
}
