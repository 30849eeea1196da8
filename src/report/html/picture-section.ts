/** Sections of the report that are drawn from an incident's picture. */
import type { IncidentPicture } from "../../model/picture.ts";
import { LogLines } from "../parts/log-lines.tsx";
import { markupOf } from "../parts/markup-of.ts";
import { Metrics } from "../parts/metrics.tsx";
import { Story } from "../parts/story.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { WhatIf } from "../parts/what-if.tsx";
import { html, type Markup } from "./escape.ts";

export interface PictureSection {
  readonly id: string;
  readonly name: string;
  readonly body: Markup;
  readonly show: true;
}

/** How it spread comes right after what to do; the rest beside what else was measured, unless the report has it in full. */
export function pictureSections(
  picture: IncidentPicture | null,
  hasMachines: boolean,
  hasTimeline: boolean,
): { readonly story: readonly PictureSection[]; readonly rest: readonly PictureSection[] } {
  if (picture === null) return { story: [], rest: [] };
  const { story, whatIf, metrics, logs, timeline } = picture;
  return {
    story: [
      ...(story ? [section("story", "How it spread", markupOf(Story, { story }))] : []),
      ...(whatIf ? [section("what-if", "What if", markupOf(WhatIf, { whatIf }))] : []),
    ],
    rest: [
      ...(metrics.length > 0 && !hasMachines
        ? [section("metrics", "Metrics beside peers", markupOf(Metrics, { pictures: metrics }))]
        : []),
      ...(logs.length > 0 ? [section("log-lines", "Log lines", markupOf(LogLines, { logs }))] : []),
      ...(timeline && !hasTimeline
        ? [section("timeline", "The worst step", markupOf(Timeline, { timeline }))]
        : []),
    ],
  };
}

function section(id: string, name: string, drawn: Markup): PictureSection {
  const body = html`<section id="${id}">
    <h2>${name}</h2>
    ${drawn}
  </section>`;
  return { id, name, body, show: true };
}
