/** The pictures of kernel timelines, for the page of `faultline trace` and inside a verdict's report. */
import type { Rank } from "../../model/ids.ts";
import type { TimelinePicture } from "../../model/trace-picture.ts";
import type { RunProfile } from "../../model/trace-profile.ts";
import { html } from "./escape.ts";
import type { Section } from "./parts-of-pages.ts";
import { renderBreakdown } from "./trace-breakdown.ts";
import { renderCdf } from "./trace-cdf.ts";
import { renderTimelineBody } from "./trace-timeline.ts";

export interface TracePictures {
  readonly run: RunProfile;
  readonly healthy: readonly RunProfile[];
  readonly distanceMs: ReadonlyMap<Rank, number>;
  readonly timeline: TimelinePicture | null;
}

/** Those that there is something to draw for. */
export function traceSections(pictures: TracePictures): readonly Section[] {
  const { run, healthy, distanceMs, timeline } = pictures;
  const drawn = timeline?.lanes.map(({ rank }) => rank) ?? [];
  const rest = run.ranks.map(({ rank }) => rank).filter((rank) => !drawn.includes(rank));
  const worst = [...drawn, ...rest];
  return [
    {
      id: "timeline",
      name: "The worst step",
      title: "What the GPUs did in the worst step",
      body: timeline ? renderTimelineBody(timeline) : html``,
    },
    {
      id: "latency",
      name: "Issue latencies",
      title: "From launch to start: issue latencies",
      body: renderCdf(run, healthy, distanceMs, worst),
    },
    {
      id: "breakdown",
      name: "Where time goes",
      title: "Where a step’s time goes",
      body: renderBreakdown(run, healthy, worst),
    },
  ].filter(({ body }) => body.text !== "");
}
