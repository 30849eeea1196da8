/** How well reported times fit marked ones, sample by sample and event by event. Nothing is point-adjusted. */
import { spansOf, type Server, type Span } from "./asd.ts";

export interface Scores {
  /** Samples that were marked and reported, reported but not marked, marked but not reported. */
  readonly hits: number;
  readonly falseSamples: number;
  readonly missedSamples: number;
  readonly events: number;
  /** Marked stretches that a reported one touches. */
  readonly found: number;
  readonly reported: number;
  /** Reported stretches that touch no marked one. */
  readonly falseAlarms: number;
  readonly machineDays: number;
}

/** Samples are five minutes apart. */
const SAMPLES_A_DAY = 288;

export function scoresOf(servers: readonly Server[], spans: readonly Span[]): Scores {
  const marked = servers.flatMap(({ label }, s) => spansOf(label, s));
  const said = servers.map(({ label }) => new Uint8Array(label.length));
  for (const { server, from, to } of spans) said[server]!.fill(1, from, to);
  let [hits, falseSamples, missedSamples] = [0, 0, 0];
  servers.forEach(({ label }, s) =>
    label.forEach((isMarked, i) => {
      const isSaid = said[s]![i] === 1;
      if (isSaid && isMarked === 1) hits++;
      else if (isSaid) falseSamples++;
      else if (isMarked === 1) missedSamples++;
    }),
  );
  return {
    hits,
    falseSamples,
    missedSamples,
    events: marked.length,
    found: marked.filter((event) => spans.some((span) => touches(span, event))).length,
    reported: spans.length,
    falseAlarms: spans.filter((span) => !marked.some((event) => touches(span, event))).length,
    machineDays: servers.reduce((sum, { label }) => sum + label.length, 0) / SAMPLES_A_DAY,
  };
}

function touches(a: Span, b: Span): boolean {
  return a.server === b.server && a.from < b.to && b.from < a.to;
}

export const SCORE_HEADS =
  "| method | precision | recall | F1 | events found | stretches reported | false alarms (a machine-day) | time |\n|---|---|---|---|---|---|---|---|";

export function scoreRow(name: string, scores: Scores, ms: number): string {
  const { hits, falseSamples, missedSamples, events, found, reported } = scores;
  const { falseAlarms, machineDays } = scores;
  const precision = hits / (hits + falseSamples);
  const recall = hits / (hits + missedSamples);
  const f1 = (2 * hits) / (2 * hits + falseSamples + missedSamples);
  const cells = [
    `${share(precision)} (${hits} of ${hits + falseSamples})`,
    `${share(recall)} (of ${hits + missedSamples})`,
    share(f1),
    `${found} of ${events}`,
    String(reported),
    `${falseAlarms} (${(falseAlarms / machineDays).toFixed(3)})`,
    `${(ms / 1000).toFixed(1)} s`,
  ];
  return `| ${name} | ${cells.join(" | ")} |`;
}

function share(value: number): string {
  return Number.isNaN(value) ? "—" : value.toFixed(3);
}
