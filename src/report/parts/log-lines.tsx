/** Lines of logs around those that tell something. Key lines are marked by a sign and by weight, not by colour alone. */
import type { VNode } from "preact";
import { count, cutText, thousands } from "../../base/text.ts";
import type { LogExcerpt } from "../../model/picture.ts";
import { type ClockZone, shiftedMs, UTC } from "./clock-zone.ts";
import { utcWords } from "./moment.tsx";

const MOST_EXCERPTS = 12;
const MOST_LINES = 200;
/** Two or three rows of a screen; the rest unfolds. */
const MOST_OPEN = 300;
const MOST_TEXT = 2_000;
const MOST_NAME = 300;

export function LogLines({
  logs,
  zone = UTC,
  beside,
}: {
  readonly logs: readonly LogExcerpt[];
  readonly zone?: ClockZone;
  /** What can be done with a key line, on a page. */
  readonly beside?: (text: string) => VNode;
}): VNode | null {
  if (logs.length === 0) return null;
  return (
    <>
      {logs.slice(0, MOST_EXCERPTS).map((excerpt) => (
        <Excerpt excerpt={excerpt} zone={zone} beside={beside} />
      ))}
      {logs.length > MOST_EXCERPTS && (
        <p class="fl-note">{count(logs.length - MOST_EXCERPTS, "more excerpt")} left out.</p>
      )}
    </>
  );
}

function Excerpt({
  excerpt,
  zone,
  beside,
}: {
  readonly excerpt: LogExcerpt;
  readonly zone: ClockZone;
  readonly beside: ((text: string) => VNode) | undefined;
}): VNode {
  const { file, rank, node, lines } = excerpt;
  const timed = lines.flatMap(({ timeMs }) => (timeMs === null ? [] : [timeMs]));
  const days = new Set(timed.flatMap((ms) => dayOf(ms, zone)));
  const [day] = days;
  const inZone = `times in ${zone.name(timed[0] ?? 0)}`;
  const who = [
    rank === null ? "" : `rank ${rank}`,
    node === null ? "" : cutText(node, MOST_NAME),
    days.size === 1 ? `${day}, ${inZone}` : days.size > 1 ? inZone : "",
  ].filter((part) => part !== "");
  return (
    <article class="fl-log">
      <h3>
        <code>{cutText(file, MOST_NAME)}</code>
      </h3>
      {who.length > 0 && <p class="fl-note">{who.join(" · ")}</p>}
      <ol tabIndex={0} aria-label={`Lines of ${cutText(file, MOST_NAME)}`}>
        {lines.slice(0, MOST_LINES).map((line, i) => (
          <li class={line.isKey ? "fl-key-line" : undefined}>
            {hasGap(lines[i - 1]?.line, line.line) && (
              <span class="fl-skip">lines {skipped(lines[i - 1]!.line!, line.line!)} left out</span>
            )}
            <span class="fl-mark">
              {line.isKey && (
                <>
                  <span aria-hidden="true">▶</span>
                  <span class="fl-hidden">key line</span>
                </>
              )}
            </span>
            <span class="fl-number">{line.line ?? ""}</span>
            {days.size > 0 && (
              <span class="fl-time">
                {line.timeMs === null ? "" : clockOf(line.timeMs, zone, days.size > 1)}
              </span>
            )}
            <LineText text={line.text} />
            {line.count > 1 && (
              <span class="fl-times">
                ×{thousands(line.count)}
                <span class="fl-hidden"> times</span>
              </span>
            )}
            {line.isKey && beside?.(line.text)}
          </li>
        ))}
      </ol>
      {lines.length > MOST_LINES && (
        <p class="fl-note">{count(lines.length - MOST_LINES, "more line")} left out.</p>
      )}
    </article>
  );
}

function LineText({ text }: { readonly text: string }): VNode {
  if (text.length <= MOST_OPEN) return <code class="fl-text">{text}</code>;
  return (
    <details class="fl-text fl-long">
      <summary>
        <code>{text.slice(0, MOST_OPEN)}</code>
        <span class="fl-more">… {thousands(text.length - MOST_OPEN)} more characters</span>
      </summary>
      <code>{cutText(text.slice(MOST_OPEN), MOST_TEXT)}</code>
    </details>
  );
}

function hasGap(before: number | null | undefined, here: number | null): boolean {
  // One line is the marks under a traceback's line, or a line that says nothing.
  return typeof before === "number" && here !== null && here > before + 2;
}

function skipped(before: number, here: number): string {
  return `${thousands(before + 1)}–${thousands(here - 1)}`;
}

function dayOf(ms: number, zone: ClockZone): string[] {
  const words = utcWords(shiftedMs(ms, zone));
  return words === "–" ? [] : [words.slice(0, 10)];
}

/** "00:41:49.457"; with the day where lines are of several. */
function clockOf(ms: number, zone: ClockZone, hasDay: boolean): string {
  const words = utcWords(shiftedMs(ms, zone));
  if (words === "–") return "";
  const clock = `${words.slice(11, 19)}.${String(Math.floor(((ms % 1000) + 1000) % 1000)).padStart(3, "0")}`;
  return hasDay ? `${words.slice(5, 10)} ${clock}` : clock;
}
