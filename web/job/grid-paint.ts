/** The grid's pixels: one pass over all ranks into an image, no call of the canvas per cell. */
import { luminance, mixed, packed, rgb, SCALE, STEPS } from "./color-scale.ts";
import type { GridGeometry } from "./grid-geometry.ts";
import type { GridLayout } from "./grid-layout.ts";
import { SUSPECT, VICTIM } from "./measures.ts";
import type { RankTable } from "./rank-table.ts";
import { type Limits, stepOf } from "./scale-limits.ts";
import type { ThemeColors } from "./theme-colors.ts";
import { cutText, harmless } from "../../src/base/text.ts";

type Rgb = readonly [number, number, number];

export interface Palette {
  /** By step; then, faded, those that are not brushed. */
  readonly scale: Uint32Array;
  readonly faded: Uint32Array;
  readonly verdict: Uint32Array;
  readonly fadedVerdict: Uint32Array;
  readonly unknown: number;
  readonly dark: number;
  readonly bright: number;
  readonly page: number;
}

export function paletteOf(colors: ThemeColors): Palette {
  const page = rgb(colors.panel);
  const fade = (color: Rgb): Rgb => mixed(color, page, 0.6);
  const verdict: Rgb[] = [mixed(rgb(colors.soft), page, 0.62), rgb(colors.wait), rgb(colors.bad)];
  return {
    scale: Uint32Array.from(SCALE, packed),
    faded: Uint32Array.from(SCALE, (color) => packed(fade(color))),
    verdict: Uint32Array.from(verdict, packed),
    fadedVerdict: Uint32Array.from(verdict, (color) => packed(fade(color))),
    unknown: packed(rgb(colors.line)),
    dark: packed([0, 0, 0]),
    bright: packed([255, 255, 255]),
    page: packed(page),
  };
}

export interface Painting {
  readonly grid: GridGeometry;
  readonly table: RankTable;
  readonly palette: Palette;
  /** Values with the limits they are drawn with, or categories. */
  readonly values: Float32Array | null;
  readonly limits: Limits | null;
  readonly verdict: Uint8Array;
  /** By row, 1 where it is brushed; null where nothing is. */
  readonly brushed: Uint8Array | null;
}

/** `pixels`: of the whole canvas less the labels' room. */
export function paint(pixels: Uint32Array, width: number, painting: Painting): void {
  const { grid, table, palette, values, limits, verdict, brushed } = painting;
  const side = Math.max(1, grid.cell - grid.gap);
  const marks = stateMarks(side);
  const hatch = hatchMark(side);
  pixels.fill(palette.page);
  for (let row = 0; row < table.count; row++) {
    const isFaded = brushed !== null && brushed[row] === 0;
    let color = palette.unknown;
    let isBright = false;
    let mark = marks[table.state[row]!] ?? null;
    if (values === null) {
      const kind = verdict[row]!;
      color = (isFaded ? palette.fadedVerdict : palette.verdict)[kind]!;
      if (mark === null && kind === VICTIM) mark = hatch;
      if (mark === null && kind === SUSPECT) mark = marks[SUSPECT_MARK]!;
    } else if (limits !== null) {
      const step = stepOf(values[row]!, limits, STEPS);
      if (step >= 0) color = (isFaded ? palette.faded : palette.scale)[step]!;
      isBright = step > 150;
    }
    const start = (grid.y[row]! - grid.top) * width + grid.x[row]! - grid.left;
    // Loops, not fill(): a call for every few pixels costs twice as much.
    for (let dy = 0, at = start; dy < side; dy++, at += width)
      for (let dx = 0; dx < side; dx++) pixels[at + dx] = color;
    if (mark === null) continue;
    const ink = isBright || isLight(color) ? palette.dark : palette.bright;
    for (const place of mark)
      pixels[start + Math.floor(place / side) * width + (place % side)] = ink;
  }
}

const SUSPECT_MARK = 5;
const marksBySide = new Map<number, readonly (Int32Array | null)[]>();

/** Pixels of a cell that a state inks: stopped two bars, gone a cross, silent a dot, unknown the same, suspect a diamond. */
function stateMarks(side: number): readonly (Int32Array | null)[] {
  let marks = marksBySide.get(side);
  if (marks) return marks;
  const middle = (side - 1) / 2;
  const thick = Math.max(0.6, side / 12);
  const inset = side * 0.2;
  const isIn = (x: number, y: number, by: number) =>
    x >= by && y >= by && x <= side - 1 - by && y <= side - 1 - by;
  const bars = (x: number, y: number) =>
    isIn(x, y, inset) && Math.abs(Math.abs(x - middle) - side * 0.18) < thick;
  const cross = (x: number, y: number) =>
    isIn(x, y, inset * 0.7) && Math.abs(Math.abs(x - middle) - Math.abs(y - middle)) < thick;
  const dot = (x: number, y: number) => Math.hypot(x - middle, y - middle) < side * 0.2;
  const diamond = (x: number, y: number) =>
    Math.abs(x - middle) + Math.abs(y - middle) < side * 0.32;
  marks = [
    null,
    inked(side, bars),
    inked(side, cross),
    inked(side, dot),
    inked(side, dot),
    inked(side, diamond),
  ];
  marksBySide.set(side, marks);
  return marks;
}

function hatchMark(side: number): Int32Array {
  const apart = Math.max(3, Math.round(side / 3));
  return inked(side, (x, y) => (x + y) % apart === 0 && side > 4);
}

function inked(side: number, isInk: (x: number, y: number) => boolean): Int32Array {
  const places: number[] = [];
  for (let y = 0; y < side; y++)
    for (let x = 0; x < side; x++) if (isInk(x, y)) places.push(y * side + x);
  return Int32Array.from(places);
}

function isLight(color: number): boolean {
  return luminance([color & 255, (color >> 8) & 255, (color >> 16) & 255]) > 0.3;
}

/** Labels of bands on the left, of blocks above, of further lines' first blocks on the left. */
export function paintLabels(
  context: CanvasRenderingContext2D,
  grid: GridGeometry,
  layout: GridLayout,
  colors: ThemeColors,
  pixelRatio: number,
): void {
  const size = Math.round(12 * pixelRatio);
  context.clearRect(0, 0, grid.width, grid.height);
  context.font = `${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = colors.soft;
  const write = (text: string, x: number, y: number, most: number): void =>
    context.fillText(fitted(context, harmless(text), most), x, y);
  const most = grid.left - 8 * pixelRatio;
  let freeFrom = -Infinity;
  for (const [at, band] of layout.bands.entries()) {
    const lines = Math.ceil(band.blocks.length / grid.blocksPerLine);
    for (let line = 0; line < lines; line++) {
      const y = grid.bandTop[at]! + line * grid.linePitch + (grid.blockRows * grid.cell) / 2;
      if (y < freeFrom) continue;
      const first = band.blocks[line * grid.blocksPerLine]!;
      const text =
        line === 0 && band.label !== "" ? band.label : first.replace(/^replica /, "from ");
      context.fillStyle = line === 0 && band.label !== "" ? colors.text : colors.soft;
      write(text, 0, y, most);
      freeFrom = y + size * 1.15;
    }
  }
  context.fillStyle = colors.soft;
  const band = layout.bands[0];
  const isWrapped = band !== undefined && band.blocks.length > grid.blocksPerLine;
  if (layout.kind !== "coordinates" || band === undefined || isWrapped) {
    const words =
      layout.kind === "coordinates"
        ? "replicas from left to right, then in further lines"
        : layout.kind === "machines"
          ? "GPUs of each machine from left to right"
          : "ranks in their order";
    write(words, grid.left, grid.top / 2, grid.width - grid.left);
    return;
  }
  // The first one says what the numbers are; the others are numbers as far apart as they need.
  let free = grid.left;
  for (const [block, name] of band.blocks.entries()) {
    const text = block === 0 ? name : name.replace(/^replica /, "");
    const x = grid.left + block * grid.blockPitch;
    const room = context.measureText(text).width;
    if (x < free || x + room > grid.width) continue;
    if (block > 0 && block % labelStep(band.blocks.length, grid.blockPitch, room + size) !== 0)
      continue;
    context.fillText(text, x, grid.top / 2);
    free = x + room + size;
  }
}

/** 1, 2, 5, 10, 20, 50 …: numbers that people count in, at least so far apart that they do not touch. */
function labelStep(count: number, pitch: number, room: number): number {
  for (let ten = 1; ten < count; ten *= 10)
    for (const step of [ten, ten * 2, ten * 5]) if (step * pitch >= room) return step;
  return count;
}

function fitted(context: CanvasRenderingContext2D, text: string, most: number): string {
  let shown = cutText(text, 60);
  while (shown.length > 2 && context.measureText(shown).width > most)
    shown = `${shown.slice(0, -2)}…`;
  return shown;
}
