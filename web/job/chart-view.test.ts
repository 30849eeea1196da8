import { describe, expect, test } from "vitest";
import { between, lanesOf, moved, spanOf, zoomed } from "./chart-view.ts";

const all = { fromMs: 0, toMs: 100_000 };
const later = { fromMs: 0, toMs: 150_000 };

describe("what the chart shows", () => {
  test("all of it follows the end", () => {
    expect(spanOf({ kind: "all" }, later)).toEqual(later);
  });

  test("closer at the end goes on following it", () => {
    const view = zoomed({ kind: "all" }, 0.5, all);
    expect(spanOf(view, all)).toEqual({ fromMs: 50_000, toMs: 100_000 });
    expect(spanOf(view, later)).toEqual({ fromMs: 100_000, toMs: 150_000 });
  });

  test("a part that was drawn stays, from whichever side it was drawn", () => {
    const view = between(60_000, 20_000);
    expect(spanOf(view, later)).toMatchObject({ fromMs: 20_000, toMs: 60_000 });
  });

  test("moving left leaves the end, moving right reaches it and follows again", () => {
    const left = moved(zoomed({ kind: "all" }, 0.5, all), -0.25, all);
    expect(left).toEqual({ kind: "part", fromMs: 37_500, toMs: 87_500 });
    expect(moved(left, 0.25, all)).toEqual({ kind: "last", spanMs: 50_000 });
  });

  test("moving does not leave what there is", () => {
    const view = moved(between(1000, 21_000), -5, all);
    expect(view).toEqual({ kind: "part", fromMs: 0, toMs: 20_000 });
  });

  test("showing more than there is shows all", () => {
    expect(zoomed(between(10_000, 70_000), 2, all)).toEqual({ kind: "all" });
  });

  test("a job without a second point has a span", () => {
    const { fromMs, toMs } = spanOf({ kind: "all" }, { fromMs: 5, toMs: 5 });
    expect(toMs).toBeGreaterThan(fromMs);
  });
});

test("what overlaps gets rows of its own, and what follows takes the first that is free", () => {
  const of = (
    onsetMs: number,
    resolvedMs: number | null,
  ): Parameters<typeof lanesOf>[0][number] => ({
    onsetMs,
    resolvedMs,
  });
  expect(lanesOf([of(0, 30), of(10, 40), of(30, 35), of(50, null), of(60, null)])).toEqual([
    0, 1, 0, 0, 1,
  ]);
});
