/** The pictures of kernel timelines, for the page of `faultline trace` and inside a verdict's report. */
import type { Rank } from "../../model/ids.ts";
import type { TimelinePicture } from "../../model/trace-picture.ts";
import type { RunProfile } from "../../model/trace-profile.ts";
import { html, type Markup } from "./escape.ts";
import { renderBreakdown } from "./trace-breakdown.ts";
import { renderCdf } from "./trace-cdf.ts";
import { renderTimeline } from "./trace-timeline.ts";

export interface TracePictures {
  readonly run: RunProfile;
  readonly healthy: readonly RunProfile[];
  readonly distanceMs: ReadonlyMap<Rank, number>;
  readonly timeline: TimelinePicture | null;
}

export const TRACE_SECTIONS = [
  { id: "timeline", name: "The worst step" },
  { id: "latency", name: "Issue latencies" },
  { id: "breakdown", name: "Where time goes" },
] as const;

export function renderTracePictures(pictures: TracePictures): Markup {
  const { run, healthy, distanceMs, timeline } = pictures;
  const drawn = timeline?.lanes.map(({ rank }) => rank) ?? [];
  const rest = run.ranks.map(({ rank }) => rank).filter((rank) => !drawn.includes(rank));
  const worst = [...drawn, ...rest];
  return html`${timeline && renderTimeline(timeline)} ${renderCdf(run, healthy, distanceMs, worst)}
  ${renderBreakdown(run, healthy, worst)}`;
}

/** Those of TRACE_SECTIONS that the pictures have. */
export function traceSections({ text }: Markup): readonly { id: string; name: string }[] {
  return TRACE_SECTIONS.filter(({ id }) => text.includes(`<section id="${id}">`));
}
