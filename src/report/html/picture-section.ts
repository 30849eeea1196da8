/** Sections of the report that are drawn from an incident's picture. */
import type { IncidentPicture } from "../../model/picture.ts";
import { LogLines } from "../parts/log-lines.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { Metrics } from "../parts/metrics.tsx";
import { Story, storyTitle } from "../parts/story.tsx";
import { Timeline } from "../parts/timeline.tsx";
import type { EvidenceSection } from "./evidence-order.ts";

/** Shown right after the suspects, whatever decided. */
export function storySections(picture: IncidentPicture | null): readonly EvidenceSection[] {
  const { story = null } = picture ?? {};
  if (!story) return [];
  return [
    {
      id: "story",
      name: storyTitle(story),
      shows: ["slow/"] as const,
      folds: "",
      body: markupOf(Story, { story }),
    },
  ];
}

/** What else was measured, unless the report has it in full. */
export function pictureSections(
  picture: IncidentPicture | null,
  hasMachines: boolean,
  hasTimeline: boolean,
): readonly EvidenceSection[] {
  if (picture === null) return [];
  const { metrics, logs, timeline } = picture;
  return [
    ...(metrics.length > 0 && !hasMachines
      ? [
          {
            id: "metrics",
            name: "Metrics beside peers",
            shows: ["machines/"] as const,
            folds: "Plots",
            body: markupOf(Metrics, { pictures: metrics }),
          },
        ]
      : []),
    ...(logs.length > 0
      ? [
          {
            id: "log-lines",
            name: "Log lines",
            shows: ["logs/", "crash/", "hang/watchdog"] as const,
            folds: "The lines",
            body: markupOf(LogLines, { logs }),
          },
        ]
      : []),
    ...(timeline && !hasTimeline
      ? [
          {
            id: "timeline",
            name: "The worst step",
            shows: ["traces/"] as const,
            folds: "The drawing",
            body: markupOf(Timeline, { timeline }),
          },
        ]
      : []),
  ];
}
