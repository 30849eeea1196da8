/** The rank grid itself: a canvas of cells, a cursor that pointer and arrow keys move, a box that selects. */
import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useObservable } from "../live/observable.ts";
import { type Box, type Direction, gridGeometry, nextRow, rowAt, rowsIn } from "./grid-geometry.ts";
import type { GridLayout } from "./grid-layout.ts";
import { paint, paintLabels, paletteOf } from "./grid-paint.ts";
import type { RankTable } from "./rank-table.ts";
import type { Limits } from "./scale-limits.ts";
import { themeColors } from "./theme-colors.ts";
import { useSize } from "./use-size.ts";

export interface GridCanvasProps {
  readonly label: string;
  readonly table: RankTable;
  /** Changes whenever the table's values have. */
  readonly version: number;
  readonly layout: GridLayout;
  readonly values: Float32Array | null;
  readonly limits: Limits | null;
  readonly verdict: Uint8Array;
  readonly brushed: ReadonlySet<number> | null;
  /** Row under the cursor; −1 for none. */
  readonly cursor: number;
  onCursor(row: number): void;
  onBrush(rows: readonly number[], adds: boolean): void;
}

const WAYS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};
/** A drag shorter than this, in CSS pixels, is a click. */
const CLICK_PX = 4;

export function GridCanvas(props: GridCanvasProps): VNode {
  const { table, layout, cursor } = props;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const colors = useObservable(themeColors);
  const size = useSize(host);
  const ratio = size?.pixelRatio ?? 1;
  const grid = useMemo(
    () =>
      size &&
      gridGeometry(layout, { ...size, height: Math.max(320, Math.min(620, innerHeight * 0.6)) }),
    [layout, size],
  );
  const palette = useMemo(() => paletteOf(colors), [colors]);
  const [box, setBox] = useState<Box | null>(null);

  const image = useMemo(() => {
    if (!grid) return null;
    const data = new ImageData(grid.width - grid.left, Math.max(1, grid.height - grid.top));
    return { data, pixels: new Uint32Array(data.data.buffer) };
  }, [grid]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: true });
    if (grid && context) paintLabels(context, grid, layout, colors, ratio);
  }, [grid, colors]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: true });
    if (!grid || !image || !context) return;
    const brushed =
      props.brushed && Uint8Array.from(table.rank, (rank) => (props.brushed!.has(rank) ? 1 : 0));
    paint(image.pixels, image.data.width, { ...props, grid, palette, brushed });
    context.putImageData(image.data, grid.left, grid.top);
  }, [grid, palette, props.version, props.values, props.limits, props.verdict, props.brushed]);

  const placeOf = (event: PointerEvent): { x: number; y: number } => {
    const edge = canvas.current!.getBoundingClientRect();
    return { x: (event.clientX - edge.left) * ratio, y: (event.clientY - edge.top) * ratio };
  };
  const boxOf = (from: { x: number; y: number }, to: { x: number; y: number }): Box => ({
    x0: from.x,
    y0: from.y,
    x1: to.x,
    y1: to.y,
  });

  const onPointerMove = (event: PointerEvent): void => {
    if (!grid) return;
    const at = placeOf(event);
    if (box !== null) setBox(boxOf({ x: box.x0, y: box.y0 }, at));
    const row = rowAt(grid, at.x, at.y);
    if (row !== cursor) props.onCursor(row);
  };
  const onPointerDown = (event: PointerEvent): void => {
    // A finger that drags scrolls the page.
    if (event.button !== 0 || event.pointerType === "touch") return;
    const at = placeOf(event);
    setBox(boxOf(at, at));
    host.current!.setPointerCapture(event.pointerId);
  };
  const onPointerUp = (event: PointerEvent): void => {
    if (!grid) return;
    const to = placeOf(event);
    const drawn = boxOf(box === null ? to : { x: box.x0, y: box.y0 }, to);
    setBox(null);
    const isClick =
      Math.abs(drawn.x1 - drawn.x0) < CLICK_PX * ratio &&
      Math.abs(drawn.y1 - drawn.y0) < CLICK_PX * ratio;
    const row = rowAt(grid, to.x, to.y);
    if (event.pointerType === "touch") props.onCursor(row);
    props.onBrush(isClick ? (row < 0 ? [] : [row]) : rowsIn(grid, drawn), event.shiftKey);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!grid || table.count === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = WAYS[event.key];
    if (way) props.onCursor(cursor < 0 ? 0 : nextRow(grid, cursor, way));
    else if (event.key === "Home") props.onCursor(0);
    else if (event.key === "End") props.onCursor(table.count - 1);
    else if (event.key === "Enter" && cursor >= 0) props.onBrush([cursor], event.shiftKey);
    else return;
    event.preventDefault();
  };

  const side = grid ? (grid.cell - grid.gap) / ratio : 0;
  return (
    <div
      ref={host}
      class="grid-host"
      role="application"
      aria-roledescription="rank grid"
      aria-label={props.label}
      tabIndex={0}
      onPointerMove={onPointerMove}
      onPointerDown={onPointerDown}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setBox(null)}
      // A finger leaves with every tap: what it pointed at stays.
      onPointerLeave={(event) =>
        box === null && event.pointerType !== "touch" && props.onCursor(-1)
      }
      onKeyDown={onKeyDown}
    >
      {grid && (
        <canvas
          ref={canvas}
          aria-hidden="true"
          width={grid.width}
          height={grid.height}
          style={{ width: `${grid.width / ratio}px`, height: `${grid.height / ratio}px` }}
        />
      )}
      {grid && cursor >= 0 && cursor < grid.x.length && (
        <div
          class="grid-cursor"
          style={{
            transform: `translate(${grid.x[cursor]! / ratio}px, ${grid.y[cursor]! / ratio}px)`,
            width: `${side}px`,
            height: `${side}px`,
          }}
        />
      )}
      {box !== null && (
        <div
          class="grid-box"
          style={{
            left: `${Math.min(box.x0, box.x1) / ratio}px`,
            top: `${Math.min(box.y0, box.y1) / ratio}px`,
            width: `${Math.abs(box.x1 - box.x0) / ratio}px`,
            height: `${Math.abs(box.y1 - box.y0) / ratio}px`,
          }}
        />
      )}
    </div>
  );
}
