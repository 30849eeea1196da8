/** Shares with their intervals, and how far confidence can be trusted. */
import { wilson as wilsonInterval } from "../../src/maths/wilson.ts";

export interface Share {
  readonly right: number;
  readonly of: number;
}

export function shareOf(flags: readonly boolean[]): Share {
  return { right: flags.filter(Boolean).length, of: flags.length };
}

/** At 95 %. */
export function wilson({ right, of }: Share): readonly [number, number] {
  return wilsonInterval(right, of);
}

/** "93.3 % (84 to 97)" */
export function shareText(share: Share): string {
  if (share.of === 0) return "–";
  const [low, high] = wilson(share);
  const whole = (value: number): string => (100 * value).toFixed(0);
  return `${((100 * share.right) / share.of).toFixed(1)} % (${whole(low)} to ${whole(high)})`;
}

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly confidence: number;
  readonly right: number;
}

export interface Answered {
  readonly confidence: number;
  readonly right: boolean;
}

/** Ten bins of equal width. */
export function reliability(answers: readonly Answered[], bins = 10): Bin[] {
  return Array.from({ length: bins }, (_, i) => {
    const [from, to] = [i / bins, (i + 1) / bins];
    const inside = answers.filter(
      ({ confidence }) =>
        confidence >= from && (confidence < to || (i === bins - 1 && confidence <= 1)),
    );
    const mean = (values: readonly number[]): number =>
      values.length === 0 ? NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
    return {
      from,
      to,
      count: inside.length,
      confidence: mean(inside.map(({ confidence }) => confidence)),
      right: mean(inside.map(({ right }) => (right ? 1 : 0))),
    };
  });
}

/** Expected calibration error: by how much confidence and rightness differ, weighed by how often. */
export function calibrationError(bins: readonly Bin[]): number {
  const all = bins.reduce((sum, { count }) => sum + count, 0);
  return bins.reduce(
    (sum, { count, confidence, right }) =>
      count === 0 ? sum : sum + (count / all) * Math.abs(confidence - right),
    0,
  );
}
