/**
 * One operator as bars across its group: they end at one line, now, and the longest came first (Holmes §4.2). Or times of ranks
 * that were compared, which begin at one line. Rows of ranks that matter are high enough to be read, the others are thin: 64 fit.
 */
import type { VNode } from "preact";
import { isOperator, type StoryBar, type StoryHop } from "../../model/picture.ts";
import { cutText } from "../../base/text.ts";
import { time } from "../mitigation-words.ts";

const WIDTH = 340;
const LEFT = 124;
const RIGHT = 332;
const TOP = 16;
/** Up to so many rows all are high. */
const FEW = 16;
const HIGH = 16;
const THIN = 5;
/** High ones among many: beyond, a picture of many absent ranks would be a list. */
const MOST_HIGH = 14;
const MOST_BARS = 64;
/** Of a character, at the size of the labels. */
const CHARACTER = 6.1;
const LABEL_CHARS = 17;

interface Row {
  readonly bar: StoryBar;
  readonly y: number;
  readonly height: number;
  readonly isNamed: boolean;
}

export function StoryBars({ hop }: { readonly hop: StoryHop }): VNode {
  const rows = placeRows(hop);
  const bottom = rows.length === 0 ? TOP : rows.at(-1)!.y + rows.at(-1)!.height;
  const isTime = !isOperator(hop);
  const longest = Math.max(
    ...rows.map(({ bar }) => Math.max(amount(bar.ms) ?? 0, amount(bar.beforeMs) ?? 0)),
    1e-9,
  );
  const lengthOf = (ms: number): number => Math.max(1.5, ((RIGHT - LEFT) * ms) / longest);
  return (
    <svg
      class="fl-story-bars"
      role="img"
      aria-label={barsSentence(hop)}
      viewBox={`0 0 ${WIDTH} ${bottom + 4}`}
    >
      <path class="sb-end" d={`M${isTime ? LEFT : RIGHT} ${TOP - 4}V${bottom + 3}`} />
      <text class={isTime ? "sb-axis" : "sb-axis sb-left"} x={isTime ? LEFT : RIGHT} y={TOP - 6}>
        {AXES[hop.kind] ?? ""}
      </text>
      {rows.map((row) => (
        <BarRow hop={hop} row={row} lengthOf={lengthOf} />
      ))}
    </svg>
  );
}

const AXES: Readonly<Record<StoryHop["kind"], string>> = {
  collective: "not ended",
  transfer: "not ended",
  inside: "in operators",
  own: "outside operators",
  wires: "at least",
};

/** Who is drawn high and named: all where there are few; else whom the hop is about, and both ends of the group. */
function placeRows(hop: StoryHop): Row[] {
  const bars = hop.bars.slice(0, MOST_BARS);
  const named = new Set<number>(bars.length <= FEW ? bars.keys() : []);
  const name = (isWanted: (bar: StoryBar, i: number) => boolean): void => {
    for (const [i, bar] of bars.entries())
      if (named.size < MOST_HIGH && isWanted(bar, i)) named.add(i);
  };
  if (bars.length > FEW) {
    name(({ rank }) => rank === hop.to || rank === hop.from);
    name((_, i) => i === 0 || i === bars.length - 1);
    name(({ role }) => role !== "waits");
  }
  let y = TOP;
  return bars.map((bar, i) => {
    const row = { bar, y, height: named.has(i) ? HIGH : THIN, isNamed: named.has(i) };
    y += row.height;
    return row;
  });
}

function BarRow({
  hop,
  row,
  lengthOf,
}: {
  readonly hop: StoryHop;
  readonly row: Row;
  readonly lengthOf: (ms: number) => number;
}): VNode {
  const { bar, y, height, isNamed } = row;
  const ms = amount(bar.ms);
  const isTime = !isOperator(hop);
  const inner = isNamed ? height - 4 : height - 1.5;
  const top = round(y + (height - inner) / 2);
  const width = ms === null ? RIGHT - LEFT : lengthOf(ms);
  const before = amount(bar.beforeMs);
  const isFrom = !isTime && bar.rank === hop.from;
  const role = bar.role === "late" || bar.role === "absent" ? bar.role : "waits";
  return (
    <g class={`sb-${role}`}>
      {isNamed && (
        <text class={isFrom ? "sb-name sb-from" : "sb-name"} x="2" y={y + 12}>
          {rankLabel(bar, !isTime && bar.rank === hop.from && bar.rank !== hop.to)}
        </text>
      )}
      <rect
        class="sb-bar"
        x={round(isTime ? LEFT : RIGHT - width)}
        y={top}
        width={round(width)}
        height={round(inner)}
        rx={isNamed ? 2 : 1}
      />
      {isTime && before !== null && (
        <path class="sb-before" d={`M${round(LEFT + lengthOf(before))} ${round(y)}v${height}`} />
      )}
      {isNamed && (
        <Figure
          words={figureOf(bar, ms)}
          width={width}
          isTime={isTime}
          y={y + 12}
          isEmpty={role === "absent"}
        />
      )}
    </g>
  );
}

/** Beside the bar where there is room for it, else inside. */
function Figure({
  words,
  width,
  isTime,
  y,
  isEmpty,
}: {
  readonly words: string;
  readonly width: number;
  readonly isTime: boolean;
  readonly y: number;
  readonly isEmpty: boolean;
}): VNode {
  if (isEmpty)
    return (
      <text class="sb-figure sb-middle" x={(LEFT + RIGHT) / 2} y={y}>
        {words}
      </text>
    );
  const isInside = RIGHT - LEFT - width < words.length * CHARACTER + 6;
  const edge = isTime ? LEFT + width : RIGHT - width;
  const away = isTime === isInside ? -5 : 5;
  return (
    <text
      class={`sb-figure${isInside ? " sb-inside" : ""}${away < 0 ? " sb-left" : ""}`}
      x={round(edge + away)}
      y={y}
    >
      {words}
    </text>
  );
}

function figureOf(bar: StoryBar, ms: number | null): string {
  if (ms === null) return bar.role === "absent" ? "never arrived" : "waits";
  return time(ms);
}

/** "rank 17", or the name of a wire. */
export function barName({ rank, label }: StoryBar): string {
  return label ?? `rank ${rank}`;
}

/** "rank 17 node002"; of a long name its end, which is where machines differ. */
function rankLabel(bar: StoryBar, isFollowed: boolean): string {
  const { machine } = bar;
  const words = cutText(`${isFollowed ? "▸ " : ""}${barName(bar)}`, LABEL_CHARS);
  if (machine === null || machine === "") return words;
  const room = LABEL_CHARS - words.length - 1;
  if (machine.length <= room) return `${words} ${machine}`;
  return room < 4 ? words : `${words} …${machine.slice(1 - room)}`;
}

/** The drawing in words. */
function barsSentence({ title, says, bars }: StoryHop): string {
  const absent = bars.filter(({ role }) => role === "absent").length;
  const missing = absent === 0 ? "" : ` ${absent} of ${bars.length} never arrived.`;
  return `${title.slice(0, 200)}: ${says.slice(0, 600)}${missing}`;
}

export function amount(ms: number | null): number | null {
  return typeof ms === "number" && Number.isFinite(ms) && ms >= 0 ? ms : null;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
