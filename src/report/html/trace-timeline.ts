/** Lanes of ranks around the worst step: what each GPU did, and what held its CPU up. */
import { cutText, rankWords } from "../../base/text.ts";
import {
  CPU_ACTIVITIES,
  GPU_ACTIVITIES,
  type NamedSpan,
  type RankLane,
  type TimelinePicture,
} from "../../model/trace-picture.ts";
import { html, type Markup } from "./escape.ts";
import { px } from "./iterations-points.ts";
import { steps as roundValues } from "./iterations-scale.ts";
import { CPU_WORDS, cpuLegend, gpuLegend, msWords, shareWords } from "./trace-words.ts";

interface Run {
  /** Parts, the last one excluded. */
  readonly from: number;
  readonly to: number;
  /** From the row's lower edge, in levels. */
  readonly bottom: number;
  readonly top: number;
}

const LEFT = 112;
const PLOT = 880;
const WIDTH = LEFT + PLOT + 12;
/** Where a drawing has its time, in its own units: for a pointer that is over it. */
export const TIMELINE_LEFT = LEFT;
export const TIMELINE_PLOT = PLOT;
export const TIMELINE_WIDTH = WIDTH;
const TOP = 22;
const GPU_HEIGHT = 24;
const COMM_HEIGHT = 4;
const CPU_HEIGHT = 10;
const LANE = 56;
/** A pixel each: finer steps could not be seen, and make the page large. */
const LEVEL_HEIGHT = 1;
const MOST_CALLS = 10;
const MOST_NAME = 120;

/** The part of the window that is drawn, milliseconds from its beginning. */
export interface TimelineView {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Without heading and frame. */
export function renderTimelineBody(picture: TimelinePicture): Markup {
  return html`${renderTimelineHead(picture)}
    <div class="scroll" tabindex="0" role="group" aria-label="Timeline, scrolls sideways">
      ${renderTimelineDrawing(picture)}
    </div>
    ${renderTimelineNotes(picture)}`;
}

export function renderTimelineHead(picture: TimelinePicture): Markup {
  const { lanes, rank, step, stepMs } = picture;
  const worst = lanes.find((lane) => lane.rank === rank)!;
  return html`<p>
      Step ${step} of rank ${rank}, ${msWords(stepMs)}; the other ranks at the same moments.
      ${sentence(worst, picture)}
    </p>
    <p class="note">
      Upper row: the GPU; a column's parts are shares of that moment, so area is time. Line below:
      all communication, also what computation hides. Lower row: the CPU. Look for red in the upper
      row, and for what is below it.
    </p>
    ${gpuLegend()} ${cpuLegend()}`;
}

export function renderTimelineNotes(picture: TimelinePicture): Markup {
  const { lanes, leftOut, rank } = picture;
  const apart = lanes.filter(({ isAligned }) => !isAligned).map((lane) => lane.rank);
  return html`${
    apart.length > 0 &&
    html`<p class="note">
      The ${apart.length === 1 ? "clock" : "clocks"} of ${rankWords(apart)} cannot be compared with
      rank ${rank}’s: no communication of both was traced. Their step is put where rank ${rank}’s
      begins.
    </p>`
  }
  ${leftOut.length > 0 && html`<p class="note">Not drawn: ${rankWords(leftOut)}.</p>`}
  ${callTable(picture)}`;
}

function sentence({ ms }: RankLane, { windowMs }: TimelinePicture): string {
  const of = (part: number): string => shareWords(part / windowMs);
  return (
    `Its GPU computes for ${of(ms.matrix + ms.minority)} of the time shown, waits in communication that nothing hides ` +
    `for ${of(ms.communication)}, and for its CPU's next launch for ${of(ms["launch-gap"])}.`
  );
}

export function renderTimelineDrawing(
  picture: TimelinePicture,
  { fromMs, toMs }: TimelineView = { fromMs: 0, toMs: picture.windowMs },
): Markup {
  const { lanes, windowMs, parts, rank } = picture;
  const bottom = TOP + lanes.length * LANE;
  const toX = (ms: number): number => LEFT + (PLOT * (ms - fromMs)) / (toMs - fromMs);
  const inside = (ms: number): number => Math.min(LEFT + PLOT, Math.max(LEFT, toX(ms)));
  const own = lanes.find((lane) => lane.rank === rank)!;
  const zeroMs = own.steps.find(({ number }) => number === picture.step)?.startMs ?? 0;
  const ticks = tickMs(fromMs - zeroMs, toMs - zeroMs).map((ms) => ({ at: toX(zeroMs + ms), ms }));
  const ofPart = windowMs / parts;
  const grid = ticks.map(({ at }) => `M${px(at)} ${TOP - 6}V${bottom}`).join("");
  return html`<svg
    class="trace-plot"
    role="img"
    aria-label="${`Timeline of ${rankWords(lanes.map((lane) => lane.rank))} around step ${picture.step} of rank ${rank}; the table below has the longest calls`}"
    viewBox="0 0 ${WIDTH} ${bottom}"
  >
    ${ticks.map(
      ({ at, ms }) =>
        html`<text class="soft middle" x="${px(at)}" y="12">${Number(ms.toPrecision(6))}</text> `,
    )}
    <text class="soft" x="4" y="12">ms from its start</text>
    <path class="grid" d="${grid}" />
    ${lanes.map((lane, i) => drawLane(lane, TOP + i * LANE, { ofPart, inside }))}
  </svg>`;
}

/** Round times from one to the other, in view; the first of a whole window is its step's beginning. */
function tickMs(fromMs: number, toMs: number): number[] {
  const [first = 0, second = 1] = roundValues(toMs - Math.max(0, fromMs), 12);
  const every = second - first;
  const ticks: number[] = [];
  for (let ms = Math.max(0, Math.ceil(fromMs / every) * every); ms <= toMs; ms += every)
    ticks.push(ms);
  return ticks;
}

interface Scale {
  /** Milliseconds of a part. */
  readonly ofPart: number;
  /** Milliseconds to a place across, cut at the edges. */
  readonly inside: (ms: number) => number;
}

function drawLane(lane: RankLane, y: number, { ofPart, inside }: Scale): Markup {
  const x = (part: number): number => inside(part * ofPart);
  const gpuY = y + GPU_HEIGHT;
  const commY = gpuY + 2 + COMM_HEIGHT;
  const cpuY = commY + 2 + CPU_HEIGHT;
  const rows = (
    keys: readonly string[],
    columns: readonly Float32Array[],
    at: number,
    height: number,
  ): Markup[] =>
    stackRuns(columns, height / LEVEL_HEIGHT).map((runs, k) => {
      const d = runsPath(runs, x, at, LEVEL_HEIGHT);
      return d === "" ? html`` : html`<path class="${keys[k]}" d="${d}" />`;
    });
  // Idle is what is left of the row: it is drawn as its ground.
  const busy = GPU_ACTIVITIES.filter((activity) => activity !== "idle");
  const edges = lane.steps
    .flatMap(({ startMs, endMs }) => [startMs, endMs])
    .filter((ms) => inside(ms) > LEFT && inside(ms) < LEFT + PLOT)
    .map((ms) => `M${px(inside(ms))} ${y - 2}V${cpuY + 2}`);
  const whole = Object.values(lane.ms).reduce((sum, ms) => sum + ms, 0);
  return html`<g>
    <text class="name" x="4" y="${y + 11}">rank ${lane.rank}${!lane.isAligned && " *"}</text>
    <text class="soft" x="4" y="${y + 24}"
      >CPU late ${shareWords(lane.ms["launch-gap"] / Math.max(whole, 1e-9))}</text
    >
    <path class="idle" d="${traced(lane, x, gpuY)}" />
    ${rows(
      busy,
      busy.map((activity) => lane.gpu[activity]),
      gpuY,
      GPU_HEIGHT,
    )}
    ${rows(["communication"], [lane.communication], commY, COMM_HEIGHT)}
    <path class="cpu-track" d="M${LEFT} ${cpuY}h${PLOT}v${-CPU_HEIGHT}h${-PLOT}z" />
    ${rows(
      CPU_ACTIVITIES,
      CPU_ACTIVITIES.map((activity) => lane.cpu[activity]),
      cpuY,
      CPU_HEIGHT,
    )}
    <path class="step-edge" d="${[...new Set(edges)].join("")}" />
    ${seenCalls(lane, inside).map(
      (call) =>
        html`<rect
          class="call"
          x="${px(inside(call.startMs))}"
          y="${cpuY - CPU_HEIGHT}"
          width="${px(Math.max(1, inside(call.startMs + call.durMs) - inside(call.startMs)))}"
          height="${CPU_HEIGHT}"
          ><title>${callWords(call)}</title></rect
        > `,
    )}
  </g>`;
}

function seenCalls({ calls }: RankLane, inside: Scale["inside"]): readonly NamedSpan[] {
  return calls.filter(
    ({ startMs, durMs }) => inside(startMs + durMs) > LEFT && inside(startMs) < LEFT + PLOT,
  );
}

/** The ground of the GPU's row, where the trace has it: outside of it nothing is known. */
function traced(lane: RankLane, x: (part: number) => number, y: number): string {
  const columns = GPU_ACTIVITIES.map((activity) => lane.gpu[activity]);
  const known = columns[0]!.map((_, part) =>
    columns.reduce((sum, column) => sum + column[part]!, 0),
  );
  return runsPath(
    stackRuns([known.map((share) => (share > 0.5 ? 1 : 0))], 1)[0]!,
    x,
    y,
    GPU_HEIGHT,
  );
}

function callWords({ activity, name, durMs }: NamedSpan): string {
  return `${cutText(name, MOST_NAME)}: ${msWords(durMs)} (${CPU_WORDS[activity]})`;
}

function callTable({ lanes, rank, step }: TimelinePicture): Markup {
  const own = lanes.find((lane) => lane.rank === rank)!;
  const zeroMs = own.steps.find(({ number }) => number === step)?.startMs ?? 0;
  const calls = lanes
    .flatMap((lane) => lane.calls.map((call) => ({ lane, call })))
    .toSorted((a, b) => b.call.durMs - a.call.durMs)
    .slice(0, MOST_CALLS);
  if (calls.length === 0) return html``;
  return html`<details>
    <summary>The longest calls that blocked a CPU</summary>
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col">Call</th>
            <th scope="col">What</th>
            <th scope="col" class="number">At, ms</th>
            <th scope="col" class="number">Took, ms</th>
          </tr>
        </thead>
        <tbody>
          ${calls.map(
            ({ lane, call }) =>
              html`<tr>
                <td>${lane.rank}</td>
                <td>${cutText(call.name, MOST_NAME)}</td>
                <td>${CPU_WORDS[call.activity]}</td>
                <td class="number">${(call.startMs - zeroMs).toFixed(1)}</td>
                <td class="number">${call.durMs.toFixed(2)}</td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}

/**
 * Shares of parts of a window as stacked columns: area is time, so nothing is lost where many events fall into one
 * pixel, and nothing is made larger than it is. Neighbouring parts that look the same become one rectangle.
 * One list of runs a column, in the order in which they are stacked.
 */
export function stackRuns(columns: readonly Float32Array[], levels: number): Run[][] {
  const parts = columns[0]?.length ?? 0;
  const filled = new Float64Array(parts);
  return columns.map((column) => {
    const runs: Run[] = [];
    let open: { from: number; bottom: number; top: number } | null = null;
    for (let part = 0; part <= parts; part++) {
      // Sums are rounded, not shares: rounding never makes a stack higher than the row.
      const before = filled[part] ?? 0;
      const after = Math.min(1, before + (column[part] ?? 0));
      const [bottom, top] = [Math.round(before * levels), Math.round(after * levels)];
      if (part < parts) filled[part] = after;
      if (open && part < parts && bottom === open.bottom && top === open.top) continue;
      if (open && open.top > open.bottom) runs.push({ ...open, to: part });
      open = { from: part, bottom, top };
    }
    return runs;
  });
}

/** Rectangles of one path. `y` is the row's lower edge; a level is so high. */
function runsPath(
  runs: readonly Run[],
  x: (part: number) => number,
  y: number,
  levelHeight: number,
): string {
  return runs
    .filter(({ from, to }) => x(to) > x(from))
    .map(({ from, to, bottom, top }) => {
      const [left, width, height] = [x(from), x(to) - x(from), (top - bottom) * levelHeight];
      return `M${px(left)} ${px(y - bottom * levelHeight)}h${px(width)}v${px(-height)}h${px(-width)}z`;
    })
    .join("");
}
