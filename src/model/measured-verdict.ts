/** Metrics come after the verdict, and say what is physically wrong where the verdict could not. */
import { capital } from "../base/text.ts";
import { type Measured, physicalWords } from "./deviation-words.ts";
import type { MachinePicture } from "./machine-picture.ts";
import type { Verdict } from "./verdict.ts";

/** The verdict with "is throttled: 645 MHz at 90 °C" in its answer and summary; null where the metrics show nothing of it. */
export function measuredVerdict(
  verdict: Verdict,
  metrics: readonly MachinePicture[],
): Verdict | null {
  const { answer, summary, suspects } = verdict;
  const [first] = suspects;
  // Only what slows a GPU down explains a slow one: anything else that is unlike stays among the plots.
  if (!answer || answer.isSeen || first?.cause !== "gpu-slow") return null;
  const own = metrics.filter((one) => one.machine === (first.machine ?? first.name));
  const seen = physicalWords(own.flatMap(measuredOf), answer.device);
  if (!seen?.isThrottled) return null;
  const [before, now] = [answer.what, seen.what].map((what) => `${answer.who} ${what}`) as [
    string,
    string,
  ];
  return {
    ...verdict,
    answer: { ...answer, what: seen.what, isSeen: true },
    summary: summary.replace(before, () => now).replace(capital(before), () => capital(now)),
  };
}

/** Medians of the later half of what was drawn since it deviates, beside the peers' band. */
function measuredOf(picture: MachinePicture): Measured[] {
  const { metric, device, timeS, value, low, middle, high, fromS, toS } = picture;
  const within = timeS.flatMap((at, k) => (fromS < toS && (at < fromS || at > toS) ? [] : [k]));
  const late = within.slice(Math.floor(within.length / 2));
  const mid = (list: readonly (number | null)[]): number => {
    const known = late.flatMap((k) => list[k] ?? []).toSorted((a, b) => a - b);
    return known[known.length >> 1] ?? NaN;
  };
  const [own, peers] = [mid(value), mid(middle)];
  const direction = own < mid(low) ? "low" : own > mid(high) ? "high" : null;
  return direction === null || !Number.isFinite(peers)
    ? []
    : [{ metric, device, value: own, peers, direction }];
}
