/**
 * The layout in pixels of the screen: cells as large as the width and a fair height allow, blocks that wrap into further
 * lines where a band is wider than the page. All lengths are device pixels, so that cells are sharp on any screen.
 */
import type { GridLayout } from "./grid-layout.ts";

export interface GridGeometry {
  /** From one cell to the next; the drawn square is smaller by `gap`. */
  readonly cell: number;
  readonly gap: number;
  /** Cells side by side and below each other in a block. */
  readonly blockColumns: number;
  readonly blockRows: number;
  readonly blocksPerLine: number;
  readonly blockPitch: number;
  readonly linePitch: number;
  /** Room for labels, left and above. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Upper edge of every band. */
  readonly bandTop: readonly number[];
  /** Left upper corner by row of the table. */
  readonly x: Int32Array;
  readonly y: Int32Array;
}

export interface Room {
  readonly width: number;
  /** What is fair; where the smallest cells do not fit the grid becomes higher. */
  readonly height: number;
  readonly pixelRatio: number;
}

const LEAST_CELL = 4;
const READABLE_CELL = 10;
const MOST_CELL = 88;

export function gridGeometry(layout: GridLayout, room: Room): GridGeometry {
  const ratio = room.pixelRatio;
  const left = Math.round((layout.kind === "coordinates" ? 68 : 112) * ratio);
  const top = Math.round(22 * ratio);
  const width = Math.max(left + 16, Math.floor(room.width * ratio));
  const inner = width - left;
  const fair = Math.floor(room.height * ratio) - top;
  const unwrapped = largest(layout, inner, fair, ratio, true);
  const wrapped = largest(layout, inner, fair, ratio, false);
  // A band on one line is read at a glance; lines are worth it where they make cells twice as large, or fit at all.
  const isOneLine =
    unwrapped !== null &&
    (unwrapped.cell * 2 > wrapped.cell || unwrapped.cell >= READABLE_CELL * ratio);
  const best = isOneLine ? unwrapped : wrapped;
  const { cell, columns, perLine, blockPitch, linePitch, bandTop } = best;
  const x = new Int32Array(layout.slot.length);
  const y = new Int32Array(layout.slot.length);
  for (let row = 0; row < x.length; row++) {
    const block = layout.block[row]!;
    const slot = layout.slot[row]!;
    x[row] = left + (block % perLine) * blockPitch + (slot % columns) * cell;
    y[row] =
      top +
      bandTop[layout.band[row]!]! +
      Math.floor(block / perLine) * linePitch +
      Math.floor(slot / columns) * cell;
  }
  return {
    cell,
    gap: cell >= 12 * ratio ? Math.round(2 * ratio) : cell >= 4 ? 1 : 0,
    blockColumns: columns,
    blockRows: best.rows,
    blocksPerLine: perLine,
    blockPitch,
    linePitch,
    left,
    top,
    width,
    height: top + best.height,
    bandTop: bandTop.map((at) => top + at),
    x,
    y,
  };
}

/**
 * The largest cells of any shape of blocks that fit. `isOneLine`: every band on one line, or every machine on its own so
 * that each is named; null where that cannot be.
 */
function largest(
  layout: GridLayout,
  inner: number,
  fair: number,
  ratio: number,
  isOneLine: true,
): Fit | null;
function largest(
  layout: GridLayout,
  inner: number,
  fair: number,
  ratio: number,
  isOneLine: false,
): Fit;
function largest(
  layout: GridLayout,
  inner: number,
  fair: number,
  ratio: number,
  isOneLine: boolean,
): Fit | null {
  const least = Math.round(LEAST_CELL * ratio);
  const isByMachine = isOneLine && layout.kind !== "coordinates";
  const mostPerLine = isByMachine ? 1 : Infinity;
  const mostLines = isByMachine ? Infinity : layout.bands.length;
  let found: Fit | null = null;
  for (let cell = Math.round(MOST_CELL * ratio); cell >= least; cell--) {
    for (const columns of shapes(layout)) {
      const fit = fitted(layout, cell, columns, inner, ratio, mostPerLine);
      if (fit === null || (isOneLine && fit.lines > mostLines)) continue;
      // At the least size height is given up before cells are.
      if (fit.height > fair && (cell > least || isByMachine)) continue;
      if (found === null || isBetter(fit, found)) found = fit;
    }
    if (found !== null) return found;
  }
  if (isOneLine) return null;
  return fitted(layout, 2, 1, inner, ratio, Infinity)!;
}

interface Fit {
  readonly cell: number;
  readonly columns: number;
  readonly rows: number;
  readonly perLine: number;
  readonly blockPitch: number;
  readonly linePitch: number;
  readonly bandTop: readonly number[];
  readonly height: number;
  readonly lines: number;
}

function fitted(
  layout: GridLayout,
  cell: number,
  columns: number,
  inner: number,
  ratio: number,
  mostPerLine: number,
): Fit | null {
  const rows = Math.ceil(layout.slots / columns);
  // Blocks of one column are apart as their cells are; of more, a little more.
  const space = Math.max(Math.round(2 * ratio), Math.round(cell / 4));
  const apart = columns > 1 ? space : 0;
  const below = rows > 1 ? space : 0;
  const blockPitch = columns * cell + apart;
  const perLine = Math.min(mostPerLine, Math.floor((inner + apart) / blockPitch));
  if (perLine < 1) return null;
  const linePitch = rows * cell + below;
  const bandGap = layout.bands.length > 1 ? space * 2 : 0;
  const bandTop: number[] = [];
  let height = 0;
  let lines = 0;
  for (const band of layout.bands) {
    const own = Math.ceil(band.blocks.length / perLine);
    bandTop.push(height);
    height += own * linePitch + bandGap;
    lines += own;
  }
  return { cell, columns, rows, perLine, blockPitch, linePitch, bandTop, height, lines };
}

/** Machines are rows of GPUs; tensor ranks may be folded to any shape without a ragged edge. */
function shapes(layout: GridLayout): number[] {
  if (layout.kind !== "coordinates") return [layout.slots];
  const shapes = [];
  for (let columns = 1; columns <= layout.slots; columns++)
    if (layout.slots % columns === 0) shapes.push(columns);
  return shapes;
}

/** Of equal cells: the fewest wraps, then the least height. */
function isBetter(a: Fit, b: Fit): boolean {
  if (a.lines !== b.lines) return a.lines < b.lines;
  return a.height < b.height;
}

/** The row whose cell is there; −1 for none. A scan of 10,000 takes some ten microseconds, less than an index costs. */
export function rowAt(grid: GridGeometry, x: number, y: number): number {
  const { cell } = grid;
  for (let row = 0; row < grid.x.length; row++) {
    const dx = x - grid.x[row]!;
    const dy = y - grid.y[row]!;
    if (dx >= 0 && dx < cell && dy >= 0 && dy < cell) return row;
  }
  return -1;
}

export interface Box {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

/** Rows whose cells a rectangle touches; its corners in any order. */
export function rowsIn(grid: GridGeometry, box: Box): number[] {
  const [x0, x1] = [Math.min(box.x0, box.x1), Math.max(box.x0, box.x1)];
  const [y0, y1] = [Math.min(box.y0, box.y1), Math.max(box.y0, box.y1)];
  const side = grid.cell - grid.gap;
  const rows = [];
  for (let row = 0; row < grid.x.length; row++) {
    const [x, y] = [grid.x[row]!, grid.y[row]!];
    if (x <= x1 && x + side > x0 && y <= y1 && y + side > y0) rows.push(row);
  }
  return rows;
}

export type Direction = "left" | "right" | "up" | "down";

/** The next cell that way; the same one at the edge. */
export function nextRow(grid: GridGeometry, from: number, way: Direction): number {
  const isAcross = way === "left" || way === "right";
  const sign = way === "left" || way === "up" ? -1 : 1;
  const along = isAcross ? grid.x : grid.y;
  const beside = isAcross ? grid.y : grid.x;
  let best = from;
  let bestAhead = Infinity;
  let bestAside = Infinity;
  for (let row = 0; row < grid.x.length; row++) {
    const ahead = (along[row]! - along[from]!) * sign;
    const aside = Math.abs(beside[row]! - beside[from]!);
    if (ahead <= 0 || (isAcross && aside > 0)) continue;
    if (ahead < bestAhead || (ahead === bestAhead && aside < bestAside)) {
      best = row;
      bestAhead = ahead;
      bestAside = aside;
    }
  }
  return best;
}
