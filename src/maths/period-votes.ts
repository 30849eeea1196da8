/**
 * Candidates for periods that no foreign call spoils: how far back the same few symbols in a row were last
 * seen. A single evaluation lowers the autocorrelation of the whole window; here it costs the grams that
 * straddle it. Grams of one micro-batch vote for its length, longer ones for the iteration's.
 */
const LAGS_PER_LENGTH = 4;

/** Lags with most votes, of grams of 1, 2, 4, … symbols; none above a third of the sequence. */
export function votedLags(symbols: Int32Array): number[] {
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
