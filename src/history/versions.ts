/** Numbers that say which of several rows with one key was put last, over several services with like clocks. */
interface Versions {
  /** Higher than all before. */
  next(): bigint;
  /** Higher with the time at which something was seen; among equals, higher than all before. */
  seenLast(seenMs: number): bigint;
  startAbove(this: void, version: number): void;
}

/** Of rows where the earliest counts, versions are told from here downwards. */
export const FIRST = 1n << 63n;
const PER_MS = 1000;

const SEEN_BITS = 20n;
const MOST_SEEN_MS = 2 ** 43 - 1;
/** A version that far ahead of the clock is damage; to follow it would be, too. */
const TEN_YEARS_MS = 3.2e11;

export function makeVersions(nowMs: () => number): Versions {
  let last = 0;
  let seen = 0n;
  const next = (): bigint => {
    last = Math.max(last + 1, Math.floor(nowMs()) * PER_MS);
    return BigInt(last);
  };
  return {
    next,
    seenLast(seenMs) {
      const ms = BigInt(Math.floor(Math.max(0, Math.min(seenMs, MOST_SEEN_MS))));
      seen = (seen + 1n) % (1n << SEEN_BITS);
      return (ms << SEEN_BITS) | seen;
    },
    startAbove(version) {
      if (version < (nowMs() + TEN_YEARS_MS) * PER_MS) last = Math.max(last, Math.ceil(version));
    },
  };
}

/** The earliest put gets the highest number. */
export function firstWins(version: bigint): bigint {
  return FIRST - version;
}
