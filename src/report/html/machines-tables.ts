/** What was seen besides the faulty machines: who followed, what the monitoring got wrong, what there was to see. */
import { count, cutText, thousands, percent } from "../../base/text.ts";
import type { MachineReport, MetricCoverage, Phase } from "../../model/machine-report.ts";
import { bar } from "./bar.ts";
import { html, type Markup, type Part } from "./escape.ts";
import { lastingWords, metricTitle, nameWords, utc } from "./machines-words.ts";
import { scrollingTable, type Section } from "./parts-of-pages.ts";

const MOST = 200;
const MOST_TEXT = 1_000;

/** Those that have something to say. */
export function machineParts(report: MachineReport): Section[] {
  const { followers, telemetry, jitter, phases, metrics, missing } = report;
  const parts: (Section | false)[] = [
    followers.length > 0 && {
      id: "followers",
      name: "Not to blame",
      body: followed(report),
    },
    telemetry.length > 0 && { id: "telemetry", name: "Telemetry faults", body: misread(report) },
    jitter.length > 0 && { id: "jitter", name: "Did not last", body: jitters(report) },
    phases.length > 0 && { id: "phases", name: "Phases of the job", body: phaseTable(phases) },
    metrics.length > 0 && { id: "coverage", name: "Metrics", body: coverage(metrics) },
    missing.length > 0 && { id: "missing", name: "Missing or odd", body: remarks(missing) },
  ];
  return parts.filter((part) => part !== false);
}

function followed({ followers }: MachineReport): Markup {
  return html`<p class="note">
      They differ from their peers only in what another machine's fault causes.
    </p>
    ${table(
      "Followers",
      ["Machine", "In", "Since (UTC)", "Because of"],
      followers,
      ({ machine, metric, sinceS, after }) => [
        nameWords(machine),
        metricTitle(metric),
        utc(sinceS),
        nameWords(after),
      ],
    )}`;
}

function misread({ telemetry }: MachineReport): Markup {
  return html`<p class="note">The monitoring is broken here, not the machine.</p>
    ${table(
      "Telemetry faults",
      ["Machine", "Metric", "Since (UTC)", "Until (UTC)", "Why"],
      telemetry,
      ({ machine, metric, sinceS, untilS, why }) => [
        nameWords(machine),
        metricTitle(metric),
        utc(sinceS),
        untilS === null ? "still" : utc(untilS),
        cutText(why, MOST_TEXT),
      ],
    )}`;
}

function jitters({ jitter, jittersLeftOut }: MachineReport): Markup {
  return html`<p class="note">
      No action needed, but the first place to look if training stuttered at one of these times.
    </p>
    <details>
      <summary>${count(jitter.length + jittersLeftOut, "jitter")}</summary>
      ${table(
        "Jitters",
        ["Machine", "Metric", "From (UTC)", "For", "What"],
        jitter,
        ({ machine, metric, fromS, toS, why }) => [
          nameWords(machine),
          metricTitle(metric),
          utc(fromS),
          lastingWords(toS - fromS),
          cutText(why, MOST_TEXT),
        ],
        jittersLeftOut,
      )}
    </details>`;
}

const PHASES: Readonly<Record<Phase["what"], string>> = {
  idle: "idle: no machine works",
  "warm-up": "warm-up",
  pause: "pause: all wait, then continue",
  halt: "halt: all wait, up to the end",
};

function phaseTable(phases: readonly Phase[]): Markup {
  return html`<p class="note">
      The whole job did something else: no machine is accused for what it does then.
    </p>
    ${table(
      "Phases",
      ["Phase", "From (UTC)", "To (UTC)", "For"],
      phases,
      ({ what, fromS, toS }) => [
        PHASES[what] ?? what,
        utc(fromS),
        utc(toS),
        lastingWords(toS - fromS),
      ],
    )}`;
}

/** What was recorded first, in the order given. */
function coverage(metrics: readonly MetricCoverage[]): Markup {
  const seen = metrics.filter((metric) => metric.coverage > 0);
  const absent = metrics.filter((metric) => !(metric.coverage > 0));
  const names = absent.slice(0, MOST).map(({ name }) => metricTitle(name));
  return html`${
    seen.length > 0 &&
    table(
      "Coverage of the metrics",
      ["Metric", "Source", "Samples seen of those due", "Every"],
      seen,
      ({ name, source, coverage: share, intervalS }) => [
        html`${metricTitle(name)}${metricTitle(name) !== name && html` <span class="note">${nameWords(name)}</span>`}`,
        source === "" ? "–" : html`<code>${cutText(source, 300)}</code>`,
        html`${bar(share, `Coverage ${percent(share)}`)} ${percent(share)}`,
        interval(intervalS),
      ],
    )
  }
  ${
    absent.length > 0 &&
    html`<p class="note">
      Not recorded, so nothing could be seen in them:
      ${names.join(", ")}${absent.length > names.length && ` and ${thousands(absent.length - names.length)} more`}.
    </p>`
  }`;
}

function interval(seconds: number): string {
  if (!(seconds > 0)) return "–";
  return seconds < 1 ? `${Number((1000 * seconds).toPrecision(3))} ms` : lastingWords(seconds);
}

function remarks(missing: readonly string[]): Markup {
  const rest = missing.length - MOST;
  return html`<ul>
      ${missing.slice(0, MOST).map((line) => html`<li>${cutText(line, MOST_TEXT)}</li> `)}
    </ul>
    ${rest > 0 && more(rest)}`;
}

/** `leftOut`: those that are not even in `rows`. */
export function table<T>(
  caption: string,
  head: readonly string[],
  rows: readonly T[],
  cells: (row: T) => readonly Part[],
  leftOut = 0,
): Markup {
  const rest = Math.max(0, rows.length - MOST) + leftOut;
  return html`${scrollingTable("machine", caption, head, rows.slice(0, MOST).map(cells))}
  ${rest > 0 && more(rest)}`;
}

export function more(rest: number): Markup {
  return html`<p class="note">${thousands(rest)} more, not shown here.</p>`;
}
