/**
 * What is normal for a job: the level that its slow stretches are measured by. It is where the job was before it became slow,
 * and follows it where it recovers: a job that came back to nearly what it was is not slow for ever because its first
 * iterations were a little faster. A few fast iterations between others are a dip, and no measure for anything.
 */
import type { Segment } from "./track-series.ts";

/** A new level that was verified as a tenth slower may turn out a little less over its whole length (Greyhound: 1.1). */
const SLOWER_VERIFIED = 1.085;
const SLOWER = 1.1;
/** A relief takes back so much of the rise (log units), and leaves no more than this of it. */
const TAKEN_BACK = 0.6;
const LEFT = 1.25;
/** A faster stretch shorter than this, with the old level behind it, is a dip. */
const DIP_POINTS = 10;
const SAME = 1.1;

interface Judged {
  readonly segment: Segment;
  /** Whether it is slow by what was normal, and that level; NaN where nothing was before. */
  readonly isSlow: boolean;
  readonly normalMs: number;
}

export function judged(segments: readonly Segment[]): Judged[] {
  let normalMs = NaN;
  let before: Judged | null = null;
  return segments.map((segment, k) => {
    if (segment.isNew) {
      normalMs = NaN;
      before = null;
    }
    const own = segment.levelMs;
    // What rises from its first iteration on was normal there.
    if (Number.isNaN(normalMs) && segment.ramp) normalMs = segment.ramp.fromMs;
    if (segment.points.length === 0) return { segment, isSlow: false, normalMs };
    const least = before?.isSlow ? SLOWER : SLOWER_VERIFIED;
    const isSlow = own >= least * normalMs && !(before?.isSlow && isRelief(before, own));
    const now = { segment, isSlow, normalMs };
    if (!isSlow && !isDip(segment, normalMs, segments[k + 1])) normalMs = own;
    before = now;
    return now;
  });
}

function isRelief({ segment: { levelMs }, normalMs }: Judged, own: number): boolean {
  const takenBack = Math.log(levelMs / own) / Math.log(levelMs / normalMs);
  return own < LEFT * normalMs && takenBack >= TAKEN_BACK;
}

function isDip(segment: Segment, normalMs: number, next: Segment | undefined): boolean {
  if (!next || next.isNew || segment.points.length >= DIP_POINTS) return false;
  return segment.levelMs * SLOWER_VERIFIED <= normalMs && next.levelMs * SAME >= normalMs;
}
