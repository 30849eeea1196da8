/** How long iterations take over time, beside the healthy pace, with the episodes in which something was wrong. */
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Incident, type Iterations, type JobView, paths } from "../live/api.ts";
import { type Observable, useObservable } from "../live/observable.ts";
import { useAsked } from "../live/use-asked.ts";
import { links } from "../shell/route.ts";
import { Loading, Problem } from "../shell/states.tsx";
import { Time } from "../shell/time.tsx";
import { slowerWords } from "../shell/words.ts";
import { zone } from "../shell/zone.ts";
import { type ChartView, lanesOf, moved, type Span, spanOf, zoomed } from "./chart-view.ts";
import type { IterationState } from "./follow-iterations.ts";
import { type IterationPlot, iterationPlot } from "./iteration-plot.ts";
import {
  inOtherRun,
  isThinned,
  MOST_POINTS,
  pointsOf,
  wantsLog,
  withFiner,
} from "./iteration-points.ts";
import { msWords } from "./measures.ts";
import { standsStill } from "./stands-still.ts";
import { themeColors } from "./theme-colors.ts";
import { useSize } from "./use-size.ts";

const HEIGHT_PX = 260;

export function IterationChart({
  view,
  feed,
  episodes,
  earlierRun,
}: {
  readonly view: JobView;
  readonly feed: Observable<IterationState>;
  readonly episodes: readonly Incident[];
  readonly earlierRun: string | null;
}): VNode {
  const { points: coarse, problem } = useObservable(feed);
  const [isCompared, setCompared] = useState(false);
  const [shown, setShown] = useState<ChartView>({ kind: "all" });
  const [scale, setScale] = useState<"auto" | "linear" | "log">("auto");
  // A part that was drawn is fetched in full; what is at hand of a long run was thinned out.
  const isPart = shown.kind === "part" && coarse !== null && isThinned(coarse);
  const finer = useAsked<Iterations>(
    isPart ? paths.iterations(view.job, MOST_POINTS, shown) : null,
  ).value;
  const points = coarse && finer ? withFiner(coarse, pointsOf(finer)) : coarse;
  const other = useAsked<Iterations>(
    isCompared && earlierRun !== null
      ? paths.iterations(view.job, MOST_POINTS, { run: earlierRun })
      : null,
  ).value;
  const otherRun = points && other ? inOtherRun(points, pointsOf(other)) : null;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<IterationPlot | null>(null);
  const size = useSize(host);
  const colors = useObservable(themeColors);
  const inZone = useObservable(zone);
  const isLogWanted = points !== null && wantsLog(points.durationMs);
  const isLog = scale === "auto" ? isLogWanted : scale === "log";
  const count = points?.endMs.length ?? 0;
  const all: Span = {
    fromMs: points?.endMs[0] ?? view.startedMs,
    toMs: Math.max(points?.endMs.at(-1) ?? view.seenMs, openEnd(view, episodes)),
  };
  const span = spanOf(shown, all);

  useLayoutEffect(() => {
    if (!host.current || size === null) return;
    plot.current = iterationPlot(host.current, {
      width: size.width,
      height: HEIGHT_PX,
      isLog,
      zone: inZone,
      colors,
      onView: setShown,
    });
    return () => {
      plot.current?.destroy();
      plot.current = null;
    };
  }, [size === null, isLog, inZone, colors]);
  useEffect(() => {
    if (size) plot.current?.resize(size.width, HEIGHT_PX);
  }, [size]);
  // Before the page is painted: the strip above it has the same time scale.
  useLayoutEffect(() => {
    if (points)
      plot.current?.show({ points, otherRun, span, baselineMs: view.baselineMs, episodes });
  });

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") setShown(zoomed(shown, 0.5, all));
    else if (event.key === "-" || event.key === "−") setShown(zoomed(shown, 2, all));
    else if (event.key === "0") setShown({ kind: "all" });
    else if (event.key === "ArrowLeft") setShown(moved(shown, -0.25, all));
    else if (event.key === "ArrowRight") setShown(moved(shown, 0.25, all));
    else return;
    event.preventDefault();
  };

  return (
    <section class="section" aria-labelledby="chart-title">
      <div class="section-head">
        <h2 id="chart-title">Iterations</h2>
        <div class="line small">
          {shown.kind === "part" && (
            <button type="button" onClick={() => setShown({ kind: "all" })}>
              Show all and follow
            </button>
          )}
          {earlierRun !== null && (
            <button
              type="button"
              aria-pressed={isCompared}
              onClick={() => setCompared(!isCompared)}
            >
              Compare with run {earlierRun.slice(0, 40)}
            </button>
          )}
          <select
            aria-label="Time range"
            value={shown.kind === "last" ? shown.spanMs : shown.kind}
            onChange={({ currentTarget: { value } }) =>
              setShown(value === "all" ? { kind: "all" } : { kind: "last", spanMs: Number(value) })
            }
          >
            {!isRange(shown) && (
              <option value={shown.kind === "last" ? shown.spanMs : "part"}>A part</option>
            )}
            <option value="all">All</option>
            {RANGES.map(([spanMs, words]) => (
              <option key={spanMs} value={spanMs}>
                {words}
              </option>
            ))}
          </select>
          <div class="segmented" role="group" aria-label="Zoom">
            <button
              type="button"
              aria-label="Show less time"
              onClick={() => setShown(zoomed(shown, 0.5, all))}
            >
              +
            </button>
            <button
              type="button"
              aria-label="Show more time"
              onClick={() => setShown(zoomed(shown, 2, all))}
            >
              −
            </button>
          </div>
          {(isLogWanted || scale !== "auto") && (
            <button
              type="button"
              aria-pressed={isLog}
              title="Values differ more than twentyfold"
              onClick={() => setScale(isLog ? "linear" : "log")}
            >
              {isLog ? "Log scale" : "Linear scale"}
            </button>
          )}
        </div>
      </div>
      <div class="panel chart-panel">
        <EpisodeStrip episodes={episodes} span={span} />
        <div
          ref={host}
          class="chart-host"
          role="group"
          tabIndex={0}
          aria-label="Chart of iteration times. Plus and minus zoom, arrows move, 0 shows all."
          aria-describedby="chart-words"
          onKeyDown={onKeyDown}
        />
        {points === null && !problem && <Loading what="iterations" />}
        {points !== null && count === 0 && (
          <p class="soft">No iteration has ended yet; each one appears here when it ends.</p>
        )}
        {problem ? <Problem error={problem} /> : null}
        <p id="chart-words" class="small soft">
          <ChartWords view={view} episodes={episodes} />
          {otherRun !== null && earlierRun !== null && (
            <> {otherRunWords(otherRun, earlierRun.slice(0, 40))}</>
          )}
        </p>
      </div>
    </section>
  );
}

const RANGES: readonly (readonly [spanMs: number, words: string])[] = [
  [15 * 60_000, "Last 15 min"],
  [3_600_000, "Last hour"],
  [6 * 3_600_000, "Last 6 h"],
  [24 * 3_600_000, "Last 24 h"],
];

function isRange(view: ChartView): boolean {
  if (view.kind !== "last") return view.kind === "all";
  return RANGES.some(([spanMs]) => spanMs === view.spanMs);
}

function otherRunWords(otherRun: readonly (number | null)[], run: string): string {
  const took = otherRun.filter((ms) => ms !== null).toSorted((a, b) => a - b);
  const middle = took[took.length >> 1];
  return middle === undefined
    ? `Run ${run} has none of these iterations.`
    : `Dashed: the same iterations in run ${run}, half of them in less than ${msWords(middle)}.`;
}

/** A job that stands still has no new points, yet time goes on. */
function openEnd(view: JobView, episodes: readonly Incident[]): number {
  return episodes.some(({ resolvedMs }) => resolvedMs === null) ? view.seenMs : 0;
}

const KIND_WORDS: Readonly<Record<Incident["kind"], string>> = {
  hang: "hang",
  crash: "crash",
  "fail-slow": "slow-down",
  regression: "slower code",
  "faulty-machine": "machine",
  undetermined: "undetermined",
};

/**
 * Links in the chart's own time scale, for what is shaded below: there a click would be in the way of zooming, and no key
 * would reach it.
 */
function EpisodeStrip({
  episodes,
  span,
}: {
  readonly episodes: readonly Incident[];
  readonly span: Span;
}): VNode {
  const share = (ms: number): number =>
    Math.min(1, Math.max(0, (ms - span.fromMs) / (span.toMs - span.fromMs))) * 100;
  const seen = episodes.filter(
    ({ onsetMs, resolvedMs }) => onsetMs <= span.toMs && (resolvedMs ?? Infinity) >= span.fromMs,
  );
  const lanes = lanesOf(seen);
  return (
    <div
      class="episode-strip"
      style={{ height: `${1.5 * Math.max(1, ...lanes.map((k) => k + 1))}rem` }}
    >
      {seen.map(({ id, kind, summary, verdict, onsetMs, resolvedMs }, k) => {
        const left = share(onsetMs);
        const right = share(resolvedMs ?? span.toMs);
        const who = verdict?.answer?.who ?? "";
        return (
          <a
            key={id}
            href={links.incident(id)}
            class={`episode ${kind === "fail-slow" ? "episode-warn" : "episode-bad"}`}
            title={summary.slice(0, 300)}
            style={{ left: `${left}%`, width: `${right - left}%`, top: `${1.5 * lanes[k]!}rem` }}
          >
            <span class="episode-words">
              {KIND_WORDS[kind] ?? kind}
              {who === "" ? "" : `: ${who.slice(0, 100)}`}
            </span>
            <span class="visually-hidden">: {summary.slice(0, 300)}</span>
          </a>
        );
      })}
    </div>
  );
}

function ChartWords({
  view,
  episodes,
}: {
  readonly view: JobView;
  readonly episodes: readonly Incident[];
}): VNode {
  const dated = episodes.filter(({ fromIteration }) => fromIteration !== null);
  // Of several the one that lasts: another may have begun later and be over.
  const last = dated.findLast(({ resolvedMs }) => resolvedMs === null) ?? dated.at(-1);
  const { levelMs, baselineMs } = view;
  return (
    <>
      {levelMs === null ? (
        "The iteration time is not known yet. "
      ) : (
        <>
          {standsStill(view) ? "The job hangs. Before, an iteration took " : "An iteration takes "}
          <span class="num">{msWords(levelMs)}</span>
          {baselineMs === null
            ? "; the healthy pace is not known yet. "
            : `; healthy is ${msWords(baselineMs)}${standsStill(view) ? "" : ` (${slowerWords(levelMs, baselineMs)})`}. `}
        </>
      )}
      {last ? (
        <>
          The last change began at iteration {last.fromIteration}, <Time ms={last.onsetMs} />
          {last.resolvedMs === null ? (
            ", and lasts."
          ) : (
            <>
              , and was over <Time ms={last.resolvedMs} />.
            </>
          )}
        </>
      ) : (
        "No change so far."
      )}
    </>
  );
}
