/** Which values the ends of the colour scale stand for: robust against outliers, yet one outlier is seen; and calm. */
export interface Limits {
  readonly low: number;
  readonly high: number;
  /** Of all values; beyond `high` everything has the brightest colour. */
  readonly max: number;
}

/** How far a single outlier may stretch the scale, in spans of the others: beyond, they would all look the same. */
const MOST_STRETCH = 20;

/** null where no value is known. `leastSpan`: differences below are noise and must not fill the scale. */
export function limitsOf(values: Float32Array, leastSpan: number): Limits | null {
  const sorted = values.filter((value) => Number.isFinite(value)).sort();
  if (sorted.length === 0) return null;
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
  const low = at(0.02);
  const max = sorted[sorted.length - 1]!;
  const span = Math.max(at(0.98) - low, leastSpan);
  // At the 98th percentile noise of 200 of 10,000 ranks would be as bright as the one that holds all up.
  const stretch = Math.min((max - low) * 0.6, span * MOST_STRETCH);
  return { low, high: low + Math.max(span, stretch), max };
}

/**
 * The limits to draw with: they follow what is wanted slowly, and not at all while it is near, so that a colour that
 * changes means a value that changed. Upwards faster: what is new and high should have room.
 */
export function calmed(shown: Limits | null, wanted: Limits): Limits {
  if (shown === null) return wanted;
  const span = Math.max(shown.high - shown.low, 1e-9);
  const follow = (from: number, to: number, pace: number) => {
    if (Math.abs(to - from) < span * 0.05) return from;
    const next = from + (to - from) * pace;
    return Math.abs(to - next) < span * 0.02 ? to : next;
  };
  const low = follow(shown.low, wanted.low, 0.2);
  const high = follow(shown.high, wanted.high, wanted.high > shown.high ? 0.5 : 0.15);
  return { low, high: Math.max(high, low + 1e-9), max: wanted.max };
}

/** Step of the colour scale, 0..steps − 1; −1 where the value is unknown. */
export function stepOf(value: number, limits: Limits, steps: number): number {
  if (!Number.isFinite(value)) return -1;
  const share = (value - limits.low) / (limits.high - limits.low);
  return Math.round(Math.min(1, Math.max(0, share)) * (steps - 1));
}
