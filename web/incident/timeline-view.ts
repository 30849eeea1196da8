/** Which part of a trace's window is seen: zoomed around a moment, moved, never beyond the window. */
import type { TimelineView } from "../../src/report/html/trace-timeline.ts";

/** Finer than this nothing more is to be seen: a window has this many parts. */
const MOST_ZOOM = 100;

/** `factor` below 1 shows less; `aroundMs` stays where it is. */
export function zoomedView(
  { fromMs, toMs }: TimelineView,
  factor: number,
  windowMs: number,
  aroundMs = (fromMs + toMs) / 2,
): TimelineView {
  const before = toMs - fromMs;
  const span = Math.min(windowMs, Math.max(windowMs / MOST_ZOOM, before * factor));
  const left = aroundMs - ((aroundMs - fromMs) / before) * span;
  return within(left, span, windowMs);
}

/** `byMs` below 0: to the left. */
export function movedView(
  { fromMs, toMs }: TimelineView,
  byMs: number,
  windowMs: number,
): TimelineView {
  return within(fromMs + byMs, toMs - fromMs, windowMs);
}

function within(left: number, span: number, windowMs: number): TimelineView {
  const fromMs = Math.min(Math.max(0, left), windowMs - span);
  return { fromMs, toMs: fromMs + span };
}
