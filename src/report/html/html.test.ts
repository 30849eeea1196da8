import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Job } from "../../model/job.ts";
import type { Verdict } from "../../model/verdict.ts";
import { slowGpu, standstill } from "../../../test/support/report/picture.ts";
import { renderHtml } from "./html.ts";
import { syntheticHang, type Shape } from "../../../test/support/report/job.ts";
import { reasonedSlowGpu } from "../../../test/support/report/reasoning.ts";
import { slowSeries } from "../../../test/support/report/series.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";
import { few } from "../../../test/support/cases.ts";

const SMALL: Shape = { tp: 2, dp: 2, pp: 2, culprit: 3, silent: [6] };

const HOSTILE = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `' onmouseover='alert(1)`,
  `</title></style></script></svg></pre><h1>owned</h1>`,
  `<!--`,
  `]]><![CDATA[`,
  `javascript:alert(1)//`,
  "`${alert(1)}` <b",
  `&lt;script&gt;&#60;script&#62;`,
  `\u0000\u001b[31m\u202e\ud800 x\u2028y`,
  `{{constructor.constructor("alert(1)")()}}`,
];

const ELEMENTS =
  "!doctype html head meta title style body header p span h1 h2 h3 dl div dt dd svg rect time nav a main section article b details summary ol ul li code button path marker defs desc g text table caption thead tbody i circle tr th td small wbr time pre footer script";
const ATTRIBUTES =
  "html lang charset http-equiv content name class role aria-label aria-labelledby width height viewBox preserveAspectRatio rx x y d id href datetime type data-copy tabindex scope colspan refX refY markerWidth markerHeight markerUnits orient marker-end transform aria-hidden";

function expectHarmless(page: string): void {
  const elements = new Set(ELEMENTS.split(" "));
  const attributes = new Set(ATTRIBUTES.split(" "));
  const tags = readTags(page);
  for (const tag of tags) {
    expect(elements).toContain(tag.name);
    for (const [name, value] of tag.attributes) {
      expect(attributes).toContain(name);
      if (name === "href") expect(value).toMatch(/^#[\w%.!~*()&#;-]*$/);
      if (name === "marker-end") expect(value).toMatch(/^url\(#[a-z-]+\)$/);
    }
  }
  expect(tags.filter(({ name }) => name === "script")).toHaveLength(1);
  expect(tags.filter(({ name }) => name === "style")).toHaveLength(1);
  // oxlint-disable-next-line no-control-regex
  expect(page).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]|\p{Cs}/u);
}

/** No id twice, and no link into the void. */
function expectWhole(page: string): void {
  const tags = readTags(page);
  const ids = tags.flatMap(({ attributes }) => attributes.get("id") ?? []);
  expect(new Set(ids).size).toBe(ids.length);
  const links = tags.flatMap(({ attributes }) => attributes.get("href") ?? []);
  expect(links.length).toBeGreaterThan(5);
  for (const link of links) expect(ids).toContain(link.slice(1));
}

/** Whether all of these sections are there, one after the other. */
function inOrder(page: string, ids: readonly string[]): boolean {
  const places = ids.map((id) => page.indexOf(`<section id="${id}"`));
  return places.every((at, i) => at > (places[i - 1] ?? 0));
}

function sectionOf(page: string, id: string): string {
  const at = page.indexOf(`<section id="${id}"`);
  expect([id, at]).not.toEqual([id, -1]);
  return page.slice(at, page.indexOf("</section>", at));
}

/** Every string anywhere in the value, replaced; the rest as it is. */
function poison<T>(value: T, text: string, keep: ReadonlySet<string>): T {
  if (typeof value === "string") return (keep.has(value) ? value : text) as T;
  if (value instanceof Map) {
    return new Map([...value].map(([key, entry]) => [key, poison(entry, text, keep)])) as T;
  }
  if (ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map((entry) => poison(entry as unknown, text, keep)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, poison(entry as unknown, text, keep)]),
  ) as T;
}

describe("text from strangers stays text", () => {
  test.each(HOSTILE)("in every place where a file name or a log line can stand: %j", (hostile) => {
    const { job, verdict } = syntheticHang({ ...SMALL, text: (plain) => `${plain} ${hostile}` });
    const page = renderHtml({ ...job, iterations: [slowSeries({ source: hostile })] }, verdict);
    expectHarmless(page);
    for (const bad of HOSTILE.slice(0, 3)) expect(page).not.toContain(bad);
  });

  test.each(HOSTILE)("in every string there is, even where the types forbid it: %j", (hostile) => {
    const { job, verdict } = syntheticHang(SMALL);
    const keep = new Set(["hang/wait-graph"]);
    const poisoned: Job = poison({ ...job, iterations: [slowSeries()] }, hostile, keep);
    expectHarmless(renderHtml(poisoned, poison<Verdict>(verdict, hostile, keep)));
    expectHarmless(renderHtml(poisoned, poison<Verdict>(verdict, hostile, new Set())));
  });

  test.each(few(HOSTILE, 2))(
    "in the story, the metrics, the log lines and the timeline: %j",
    (hostile) => {
      const { job } = syntheticHang(SMALL);
      for (const sample of [slowGpu, standstill, reasonedSlowGpu]) {
        const { verdict, picture } = sample((plain) => `${plain} ${hostile}`);
        const page = renderHtml(job, verdict, null, null, picture);
        expectHarmless(page);
        for (const bad of HOSTILE.slice(0, 3)) expect(page).not.toContain(bad);
        expectHarmless(renderHtml(job, verdict, null, null, poison(picture, hostile, new Set())));
      }
    },
  );

  test("and is shown to the letter", () => {
    const { job, verdict } = syntheticHang(SMALL);
    const page = renderHtml(job, { ...verdict, summary: `rank 3 said "<b>&amp;"` });
    expect(page).toContain("<h1>rank 3 said &quot;&lt;b&gt;&amp;amp;&quot;</h1>");
  });
});

describe("the page", () => {
  const { job, verdict } = syntheticHang(SMALL);
  const page = renderHtml(job, verdict);

  test("shows iteration times where there are any, folded where they decided nothing", () => {
    expect(page).not.toContain('id="iterations"');
    const text = renderHtml({ ...job, iterations: [slowSeries(), slowSeries()] }, verdict);
    expectHarmless(text);
    expect(text).toContain('<a href="#iterations">Iteration times</a>');
    expect(inOrder(text, ["suspects", "evidence", "frontiers", "waits"])).toBe(true);
    expect(inOrder(text, ["frontiers", "iterations"])).toBe(true);
    expect(sectionOf(text, "iterations")).toContain('<details class="fold">');
    expect(sectionOf(text, "frontiers")).not.toContain('class="fold"');
    expectWhole(text);
  });

  test("is one story: who, why, how it spread, what decided, what else was seen, what to do", () => {
    const sample = reasonedSlowGpu();
    const series = { ...job, iterations: [slowSeries()] };
    const text = renderHtml(series, sample.verdict, null, null, sample.picture);
    expectHarmless(text);
    expectWhole(text);
    const order = ["suspects", "why", "story", "metrics", "iterations", "log-lines"];
    expect(inOrder(text, ["mitigation", ...order, "missing", "inputs"])).toBe(true);
    expect(sectionOf(text, "metrics")).not.toContain('class="fold"');
    expect(sectionOf(text, "iterations")).toContain('class="fold"');
    expect(sectionOf(text, "log-lines")).toContain('class="fold"');
    // What a method says can be read without unfolding anything, beside what shows it.
    expect(sectionOf(text, "iterations").split("<details class")[0]).toContain(
      "iterations take 1.9 times as long",
    );
    expect(sectionOf(text, "why")).toContain('<a href="#metrics">Metrics beside peers</a>');
    expect(sectionOf(text, "missing")).toContain("No NIC counters of node002");
    expect(text).not.toMatch(/\bstyle=|https?:|url\((?!#)|@import/);
  });

  test("says at the top how sure it is and where to begin", () => {
    const { verdict: slow, picture } = slowGpu();
    const text = renderHtml(job, slow, null, null, picture);
    const head = text.slice(text.indexOf("<header"), text.indexOf("</header>"));
    expect(head).toContain("94 %, very likely");
    const [first] = text.slice(text.indexOf("</header>")).split('<details class="fl-proof"');
    expect(first).toMatch(/Do first[^]*Check the GPU[^]*rank 17 on node002/);
    expect(text).not.toContain('id="why"');
    expectWhole(text);
  });

  test("says at the top what would tell where there is nothing to do first", () => {
    const nobody = { ...verdict, suspects: [], actions: [], wouldHelp: ["the log of rank 6"] };
    const top = (one: Verdict): string => renderHtml(job, one).split("<details")[0]!;
    expect(top(nobody)).toMatch(/To find out more[^]*The log of rank 6/);
    expect(top({ ...nobody, kind: "healthy" })).not.toContain("To find out more");
    expect(top(verdict)).not.toContain("To find out more");
  });

  test("is well formed, with no id twice and no link into the void", () => {
    expectWhole(page);
  });

  test("allows its own style and script by hash, and nothing else", () => {
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!;
    expect(policy.replace(/sha256-[\w+/=]+/g, "HASH").replaceAll("&#39;", "'")).toBe(
      "default-src 'none'; style-src 'HASH'; script-src 'HASH'; base-uri 'none'; form-action 'none'",
    );
    for (const element of ["style", "script"]) {
      const inside = new RegExp(`<${element}>([^]*?)</${element}>`).exec(page)![1]!;
      const hash = createHash("sha256").update(inside).digest("base64");
      expect(policy).toContain(`${element}-src &#39;sha256-${hash}&#39;`);
    }
    expect(page).not.toMatch(/\bstyle=|https?:|url\((?!#)|@import/);
  });

  test("is the same for the same input", () => {
    expect(renderHtml(job, verdict)).toBe(page);
  });

  test("begins with the answer: kind, sentence, confidence, when, owner", () => {
    const head = page.slice(page.indexOf("<header"), page.indexOf("</header>"));
    for (const words of ["hang", verdict.summary.slice(0, 20), "93 %", "812", "00:41:49 UTC"]) {
      expect(head).toContain(words);
    }
    expect(head).toContain("operations");
  });

  test("shows the evidence that a suspect rests on, however late it comes", () => {
    const noise = Array.from({ length: 500 }, (_, i) => ({ ...verdict.findings[2]!, id: `n${i}` }));
    const text = renderHtml(job, { ...verdict, findings: [...noise, ...verdict.findings] });
    expect(text).toContain('id="finding-f2"');
    expect(text).toContain("401 more findings in verdict.json");
  });

  test("says when a rank left no dump", () => {
    expect(page).toMatch(/<th scope="row">\s*<b>6<\/b>[^]*?no dump<\/td>/);
  });

  test("stays without graph and table where there are no dumps", () => {
    const bare = { ...job, dumps: new Map() };
    const text = renderHtml(bare, { ...verdict, suspects: [], actions: [], findings: [] });
    expectHarmless(text);
    expect(text).not.toContain('id="waits"');
    expect(text).not.toContain('id="frontiers"');
  });

  test("stays below 2 MB for 1,024 ranks in 14 groups, and below for 16,384", () => {
    const shapes = [
      { tp: 8, dp: 32, pp: 4, culprit: 517, moreRoles: 11 },
      { tp: 8, dp: 256, pp: 8, culprit: 9000 },
    ];
    for (const shape of few(shapes, 1)) {
      const large = syntheticHang(shape);
      const text = renderHtml(large.job, large.verdict);
      expect(Buffer.byteLength(text)).toBeLessThan(2_000_000);
      expectHarmless(text);
      expect(text).toContain("The 256 ranks nearest to the suspects");
    }
  });

  test("stays below 2 MB however long the texts are", () => {
    const long = syntheticHang({
      ...SMALL,
      tp: 8,
      dp: 8,
      text: (plain) => `${plain} ${"x".repeat(1_000)}`,
    });
    const findings = Array.from({ length: 1_000 }, (_, i) => ({
      ...long.verdict.findings[1]!,
      id: `g${i}`,
      data: { fact: "stopped-rank" as const, side: "cpu" as const, last: "y".repeat(250_000) },
    }));
    const text = renderHtml(long.job, { ...long.verdict, findings });
    expect(Buffer.byteLength(text)).toBeLessThan(2_000_000);
  });
});
