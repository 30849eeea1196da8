/** Which part of the time the chart shows: all of it or its end, which it follows, or a part that stays. */
export type ChartView =
  | { readonly kind: "all" }
  | { readonly kind: "last"; readonly spanMs: number }
  | { readonly kind: "part"; readonly fromMs: number; readonly toMs: number };

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Closer than this nothing more is to be seen. */
const LEAST_SPAN_MS = 2_000;

export function spanOf(view: ChartView, all: Span): Span {
  if (view.kind === "part") return view;
  const toMs = Math.max(all.toMs, all.fromMs + LEAST_SPAN_MS);
  if (view.kind === "all") return { fromMs: all.fromMs, toMs };
  return { fromMs: Math.max(all.fromMs, toMs - view.spanMs), toMs };
}

/** `factor` below 1 shows less. Whoever looked at the end goes on to do so. */
export function zoomed(view: ChartView, factor: number, all: Span): ChartView {
  const { fromMs, toMs } = spanOf(view, all);
  const spanMs = Math.max(LEAST_SPAN_MS, (toMs - fromMs) * factor);
  if (spanMs >= all.toMs - all.fromMs) return { kind: "all" };
  if (view.kind !== "part") return { kind: "last", spanMs };
  const middle = (fromMs + toMs) / 2;
  return within({ fromMs: middle - spanMs / 2, toMs: middle + spanMs / 2 }, all);
}

/** `share` of what is seen, to the left where it is negative. */
export function moved(view: ChartView, share: number, all: Span): ChartView {
  if (view.kind === "all") return view;
  const { fromMs, toMs } = spanOf(view, all);
  const by = (toMs - fromMs) * share;
  return within({ fromMs: fromMs + by, toMs: toMs + by }, all);
}

export function between(aMs: number, bMs: number): ChartView {
  const fromMs = Math.min(aMs, bMs);
  return { kind: "part", fromMs, toMs: Math.max(aMs, bMs, fromMs + LEAST_SPAN_MS) };
}

/** Pushed back into what there is; at the end it follows again. */
function within({ fromMs, toMs }: Span, all: Span): ChartView {
  const spanMs = toMs - fromMs;
  if (toMs >= all.toMs) return { kind: "last", spanMs };
  if (fromMs < all.fromMs) return { kind: "part", fromMs: all.fromMs, toMs: all.fromMs + spanMs };
  return { kind: "part", fromMs, toMs };
}

/** A row for each of what overlaps, so that none covers another: the first one that is free. */
export function lanesOf(
  episodes: readonly { readonly onsetMs: number; readonly resolvedMs: number | null }[],
): number[] {
  const lanes: { onsetMs: number; endMs: number }[][] = [];
  return episodes.map(({ onsetMs, resolvedMs }) => {
    const endMs = resolvedMs ?? Infinity;
    const isFree = (lane: (typeof lanes)[number]): boolean =>
      lane.every((one) => one.endMs <= onsetMs || one.onsetMs >= endMs);
    const found = lanes.findIndex(isFree);
    const lane = found < 0 ? lanes.length : found;
    (lanes[lane] ??= []).push({ onsetMs, endMs });
    return lane;
  });
}
