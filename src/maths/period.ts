/**
 * The period of a sequence of calls (Greyhound §4.2), and what repeats inside and around it. The paper takes
 * the first lag at which the autocorrelation reaches 0.95, its artifact searches 200 calls. An iteration of
 * many micro-batches has thousands, and the micro-batch repeats so often that its lag reaches 0.95 first.
 * So lags are only candidates here: each is held against exact repetition, and all levels that repeat, from
 * the layer to the evaluation every hundred iterations, are weighed against each other.
 */
import { autocorrelation } from "./fft.ts";
import { coveredWithin, levelsOf, type Level } from "./period-runs.ts";

/**
 * Candidates for periods that no foreign call spoils: how far back the same few symbols in a row were last
 * seen. A single evaluation lowers the autocorrelation of the whole window; here it costs the grams that
 * straddle it. Grams of one micro-batch vote for its length, longer ones for the iteration's.
 */
const LAGS_PER_LENGTH = 4;

interface PeriodOptions {
  /**
   * Whether the outer pattern does something that repeating the inner one does not, so that the inner one
   * is only a part of it. `outer` may be what lies between two runs of the inner one. By default: it has a
   * symbol that the inner one lacks.
   */
  readonly isMore?: (inner: Int32Array, outer: Int32Array) => boolean;
}

interface Periods {
  readonly level: Level;
  /** Every level that was found, by ascending period; `level` is one of them. */
  readonly levels: readonly Level[];
}

const THRESHOLD = 0.95;
/** Longer sequences are judged by their end: initialisation lies at the start. */
const MOST_SYMBOLS = 1 << 17;
const LEAST_WINDOW = 3;
/** Windows of a scale: half a window apart where they hold this many symbols in all, else four. */
const SYMBOLS_PER_SCALE = 1 << 14;
const LEAST_WINDOWS = 4;
const CANDIDATES_PER_WINDOW = 12;

/** null where nothing repeats, or where what repeats is a part of something that does not. */
export function findPeriod(symbols: Int32Array, options: PeriodOptions = {}): Periods | null {
  const { isMore = hasNewSymbol } = options;
  const levels = findLevels(symbols);
  const isPartOf = ({ period, pattern }: Level, other: Level): boolean =>
    other.period > period && shares(pattern, other.pattern) && isMore(pattern, other.pattern);
  const whole = levels.filter((level) => !levels.some((other) => isPartOf(level, other)));
  let best: Level | null = null;
  for (const level of whole) if (!best || level.covered > best.covered) best = level;
  if (!best || !isBeyondChance(best, symbols.length)) return null;
  // The level that explains most may hold several iterations and the evaluation after them.
  const outer = best;
  const chosen =
    whole.find((level) => coveredWithin(level, outer) >= SHARE_OF_OUTER * outer.covered) ?? outer;
  // Symbols alone do not tell a foreign call from the rest of a period that the sequence is too short for.
  const isPart = options.isMore !== undefined && isPartOfMore(symbols, chosen, isMore);
  return isPart ? null : { level: chosen, levels };
}

/** A level that fills less of an outer one is something else that happens in it. */
const SHARE_OF_OUTER = 0.5;

/** Coins thrown n times show log2(n) equal pairs in a row at any given lag; twice that takes luck. */
function isBeyondChance({ runs, period }: Level, length: number): boolean {
  return runs.some(({ start, end }) => end - start - period >= 2 * Math.log2(length));
}

/**
 * Ascending. Windows of all scales, because a long one hides what repeats in a part of it only, and votes,
 * because one foreign call in a window of few periods is enough to hide them.
 */
function findLevels(symbols: Int32Array): Level[] {
  const values = new Float64Array(symbols.length);
  let from = Math.max(0, symbols.length - MOST_SYMBOLS);
  let to = symbols.length;
  for (let i = from; i < to; i++) values[i] = spread(symbols[i]!);
  const levels: Level[] = [];
  const known = new Set<number>();
  const tried = new Set<number>();
  const tryLag = (lag: number): void => {
    if (tried.has(lag)) return;
    tried.add(lag);
    const found = levelsOf(symbols, lag).filter(({ period }) => !known.has(period));
    for (const level of found) known.add(level.period);
    levels.push(...found);
  };
  let scale = to - from;
  let hasVoted = false;
  while (scale >= LEAST_WINDOW) {
    const most = Math.max(LEAST_WINDOWS, Math.floor(SYMBOLS_PER_SCALE / scale));
    const count = Math.min(most, Math.ceil((2 * (to - from)) / scale) - 1);
    for (let i = 0; i < count; i++) {
      const room = to - from - scale;
      const start = from + (count === 1 ? room : Math.round((room * i) / (count - 1)));
      candidates(values.subarray(start, start + scale)).forEach(tryLag);
    }
    // Where one level explains nearly all, two copies of its pattern hold every level inside it.
    for (const level of levels) {
      const longest = level.runs.find(({ start, end }) => end - start >= 0.8 * (to - from));
      if (!longest || 2 * level.period > to - from) continue;
      from = longest.start;
      to = longest.start + 2 * level.period;
    }
    if (!hasVoted) votedLags(symbols.subarray(from, to)).forEach(tryLag);
    hasVoted = true;
    scale = Math.min(Math.floor(scale / 2), to - from);
  }
  return levels.sort((a, b) => a.period - b.period);
}

/**
 * Lags at which a window resembles itself, and more than at any smaller lag: multiples of an inner period
 * cross more breaks than the period itself, an outer period crosses none.
 */
function candidates(values: Float64Array): number[] {
  const window = values.subarray(values.length - handyLength(values.length));
  const most = Math.floor(window.length / 3);
  const acf = autocorrelation(window, most);
  const lags: number[] = [];
  let record = THRESHOLD - 1e-9;
  for (let lag = 1; lag <= most; lag++) {
    const here = acf[lag]!;
    if (here <= record || (lag > 1 && here < acf[lag - 1]!) || here < (acf[lag + 1] ?? 0)) continue;
    record = here + 1e-9;
    lags.push(lag);
  }
  return [...lags.slice(0, 1), ...lags.slice(1).slice(-CANDIDATES_PER_WINDOW)];
}

/** The length itself, or a little less where that halves the transform. */
function handyLength(length: number): number {
  const handy = 3 * 2 ** Math.floor(Math.log2(length / 3));
  return handy >= 0.9 * length ? handy : length;
}

/**
 * Whether what follows the level's runs does more than repeat it: the true period was not confirmed. What
 * comes before the first is initialisation.
 */
function isPartOfMore(
  symbols: Int32Array,
  { runs, pattern }: Level,
  isMore: (inner: Int32Array, outer: Int32Array) => boolean,
): boolean {
  for (let i = 0; i < runs.length; i++) {
    const from = runs[i]!.end;
    const to = runs[i + 1]?.start ?? symbols.length;
    if (to > from && isMore(pattern, symbols.subarray(from, to))) return true;
  }
  return false;
}

/** Whether at least half of the inner pattern's symbols are in the outer one: else they have nothing in common. */
function shares(inner: Int32Array, outer: Int32Array): boolean {
  const theirs = new Set(outer);
  const ours = [...new Set(inner)];
  return 2 * ours.filter((symbol) => theirs.has(symbol)).length >= ours.length;
}

function hasNewSymbol(inner: Int32Array, outer: Int32Array): boolean {
  const known = new Set(inner);
  return outer.some((symbol) => !known.has(symbol));
}

/** A symbol as a number from -1 to 1 that looks drawn by lot, so that only equal ones correlate. */
function spread(symbol: number): number {
  let h = Math.imul(symbol ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  h ^= h >>> 16;
  return (h | 0) / 2 ** 31;
}

/** Lags with most votes, of grams of 1, 2, 4, … symbols; none above a third of the sequence. */
function votedLags(symbols: Int32Array): number[] {
  const n = symbols.length;
  const most = Math.floor(n / 3);
  const grams = symbols.map((symbol) => mix(symbol, 0));
  let bits = 4;
  while (1 << bits < 2 * n) bits++;
  const lags = new Set<number>();
  for (let length = 1; length <= most; length *= 2) {
    const last = new Int32Array(1 << bits).fill(-1);
    const votes = new Int32Array(most + 1);
    for (let i = 0; i + length <= n; i++) {
      // A collision loses a vote, no more: candidates are held against exact repetition anyway.
      const slot = grams[i]! >>> (32 - bits);
      const before = last[slot]!;
      if (before >= 0 && grams[before] === grams[i] && i - before <= most) votes[i - before]!++;
      last[slot] = i;
    }
    for (const lag of largest(votes, LAGS_PER_LENGTH)) lags.add(lag);
    for (let i = 0; i + 2 * length <= n; i++) grams[i] = mix(grams[i]!, grams[i + length]!);
  }
  return [...lags].sort((a, b) => a - b);
}

/** Indices of the largest counts, zeros left out. */
function largest(counts: Int32Array, most: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < counts.length; i++) {
    const least = best.length < most ? 0 : counts[best[most - 1]!]!;
    if (counts[i]! <= least) continue;
    if (best.length === most) best.pop();
    best.push(i);
    best.sort((a, b) => counts[b]! - counts[a]!);
  }
  return best;
}

function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 15), 0x27d4eb2f);
  return h ^ (h >>> 13);
}
