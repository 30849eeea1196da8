/** How right verdicts were at a site, as text. */
import { count } from "../base/text.ts";
import type { SiteReport, SiteScore } from "../model/site.ts";
import type { Colours } from "./terminal.ts";

const MOST_CONFUSIONS = 5;

export function renderSiteTerminal(report: SiteReport, { bold, dim }: Colours): string {
  const { all, kinds, confusions, logs } = report;
  if (all.judged === 0)
    return "nobody has judged a verdict yet; an incident's page asks whether it was right";
  const rows = [...kinds.map((one) => [one.kind, one] as const), ["all", all] as const];
  const lines = [
    bold("kind            judged  right             95 %     said  off by"),
    ...rows.map(([name, score]) => `${name.padEnd(16)}${scoreText(score)}`),
    "",
    bold("confidence      judged  right    said"),
    ...all.calibration.map(
      ({ from, to, judged, right, said }) =>
        `${`${whole(from)} to ${whole(to)} %`.padEnd(16)}${pad(judged, 6)}  ${pad(`${whole(right / judged)} %`, 5)}  ${pad(`${whole(said)} %`, 6)}`,
    ),
  ];
  if (confusions.length > 0) lines.push("", bold("said → true cause"));
  for (const { said, truth, incidents } of confusions.slice(0, MOST_CONFUSIONS))
    lines.push(`${pad(incidents, 4)}  ${said ?? "no suspect"} → ${truth}`);
  if (logs)
    lines.push(
      "",
      dim(
        `logs: ${count(logs.healthyJobs, "healthy job")} learnt, ${count(logs.normalEvents, "normal event")}, ${count(logs.records.filter(({ isOwn }) => isOwn).length, "record")} of the site's own`,
      ),
    );
  return lines.join("\n");
}

function scoreText({ judged, right, low, high, calibration, calibrationError }: SiteScore): string {
  const said = calibration.reduce((sum, bin) => sum + bin.said * bin.judged, 0) / judged;
  const share = `${whole(right / judged)} %`;
  return [
    pad(judged, 6),
    pad(`${right} (${share})`, 12),
    pad(`${whole(low)} to ${whole(high)} %`, 13),
    pad(`${whole(said)} %`, 6),
    pad(`${whole(calibrationError)} %`, 6),
  ].join("  ");
}

function whole(share: number): string {
  return (100 * share).toFixed(0);
}

function pad(value: number | string, width: number): string {
  return String(value).padStart(width);
}
