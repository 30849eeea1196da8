/** A small curve of a job's last iterations beside its healthy pace. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { MOST_RECENT, recentDurations, watchRecent } from "./recent-iterations.ts";

const WIDTH = 180;
const HEIGHT = 36;

export function Sparkline({
  job,
  healthyMs,
}: {
  readonly job: string;
  readonly healthyMs: number | null;
}): VNode {
  const [, draw] = useState(0);
  useEffect(() => watchRecent(job, () => draw((count) => count + 1)), [job]);
  const { line, healthyY } = curveOf(recentDurations(job), healthyMs);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {healthyY !== null && (
        <line class="spark-healthy" x1="0" x2={WIDTH} y1={healthyY} y2={healthyY} />
      )}
      <polyline class="spark-line" points={line} />
    </svg>
  );
}

/** From nothing upwards, so that twice as long is twice as high; the healthy pace is at half the height or below. */
export function curveOf(
  durations: readonly number[],
  healthyMs: number | null,
): { readonly line: string; readonly healthyY: number | null } {
  const known = durations.filter((ms) => Number.isFinite(ms));
  const top = Math.max(1e-9, ...known.map((ms) => ms * 1.1), (healthyMs ?? 0) * 2);
  const y = (ms: number): number => Math.round((HEIGHT - 1 - (ms / top) * (HEIGHT - 2)) * 10) / 10;
  const stepX = WIDTH / (MOST_RECENT - 1);
  const first = MOST_RECENT - durations.length;
  const points = durations.flatMap((ms, i) =>
    Number.isFinite(ms) ? [`${Math.round((first + i) * stepX * 10) / 10},${y(ms)}`] : [],
  );
  return { line: points.join(" "), healthyY: healthyMs === null ? null : y(healthyMs) };
}
