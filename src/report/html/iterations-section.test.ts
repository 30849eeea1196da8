import { describe, expect, test } from "vitest";
import { renderIterationsPage } from "./iterations-page.ts";
import { renderSeries } from "./iterations-section.ts";
import {
  changeAt,
  episodeOf,
  slowSeries,
  syntheticSeries,
} from "../../../test/support/report/series.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";

/** Words of the markup, one space between them. */
function words(markup: string): string {
  return markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

function plots(markup: string): number {
  return markup.match(/class="iteration-plot"/g)?.length ?? 0;
}

describe("the section", () => {
  test("says median, variation, time wasted and restarts in one line", () => {
    const { text } = renderSeries([slowSeries({ restarts: [86] })]);
    readTags(text);
    expect(words(text)).toContain(
      "median 1 s · variation 1 % · time wasted 0.0177 h (34.4 % of the time) · 1 restart",
    );
  });

  test("lists the change points, with the time where it is known", () => {
    const text = words(renderSeries([slowSeries()]).text);
    expect(text).toContain("Change at Known at Before After Ratio When (UTC) Line");
    expect(text).toContain("▲ 16 slower 20 1 s 1.9 s ×1.9 2026-11-15 00:41:49 316");
    expect(text).toContain("▼ 86 faster 90 1.9 s 1 s ×0.53 – –");
  });

  test("lists the most wasteful episodes first, and counts the rest", () => {
    const durationMs = Array.from({ length: 300 }, () => 1_000);
    const spikes = Array.from({ length: 30 }, (_, i) => episodeOf("spike", i + 1, i + 1, 1.2));
    const last = episodeOf("degradation", 200, 300, 1.5, { isOpen: true });
    const { text } = renderSeries([syntheticSeries({ durationMs, episodes: [...spikes, last] })]);
    const table = words(text.slice(text.indexOf(">Type<")));
    expect(table).toMatch(/Period degradation 200–300, up to the end ×1.5 101 50.5 s –/);
    expect(table).toContain("11 more episodes that wasted less.");
  });

  test("draws ranks that say the same once", () => {
    const ranks = [0, 4, 5, 6, 7].map((rank) =>
      slowSeries({
        rank,
        source: `rank${rank}.log`,
        changePoints: [changeAt(16 + (rank % 3), 1_000, 1_900)],
      }),
    );
    const other = slowSeries({ rank: 9, changePoints: [changeAt(60, 1_000, 1_900)] });
    const { text } = renderSeries([...ranks, other]);
    expect(plots(text)).toBe(2);
    expect(text).toContain("Ranks 4–7 say the same.");
  });

  test("draws eight series at most, those that lost most, and names the others", () => {
    const many = Array.from({ length: 12 }, (_, i) =>
      slowSeries({ source: `log${i}`, episodes: [episodeOf("degradation", 16, 85, 1.5 + i / 10)] }),
    );
    const { text } = renderSeries(many);
    expect(plots(text)).toBe(8);
    expect(words(text)).toContain("Not drawn: log0; log1; log2; log3.");
  });
});

describe("the page of iteration times", () => {
  test("is well formed and closed to the network", () => {
    const page = renderIterationsPage([slowSeries()], "Iteration times");
    const ids = readTags(page).flatMap(({ attributes }) => attributes.get("id") ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect(page).toContain("default-src &#39;none&#39;");
    expect(page).not.toMatch(/\bstyle=|https?:|url\(/);
    expect(words(page)).toContain("1 slowdown, time wasted: 0.0177 h.");
  });

  test("keeps strangers' text as text", () => {
    const hostile = `</title><script>alert(1)</script>`;
    const page = renderIterationsPage([slowSeries({ source: hostile })], hostile);
    expect(readTags(page).filter(({ name }) => name === "script")).toHaveLength(1);
  });

  test("says when there is nothing", () => {
    expect(words(renderIterationsPage([], "x"))).toContain("No iteration times found.");
  });
});
