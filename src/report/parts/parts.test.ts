import { describe, expect, test } from "vitest";
import type { IncidentAction } from "../../model/incident.ts";
import type { StoryBar, StoryHop } from "../../model/picture.ts";
import { html } from "../html/escape.ts";
import { reasonedSlowGpu } from "../../../test/support/report/reasoning.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";
import { Actions, IncidentActions } from "./actions.tsx";
import { Evidence } from "./evidence.tsx";
import { LogLines } from "./log-lines.tsx";
import { markupOf } from "./markup-of.ts";
import { Drawn } from "./markup.tsx";
import { figureWordsOf, Metrics } from "./metrics.tsx";
import { PARTS_STYLE } from "./parts-style.ts";
import { hasReasoning, Reasoning } from "./reasoning.tsx";
import { slowGpu, standstill } from "../../../test/support/report/picture.ts";
import { StoryBars } from "./story-bars.tsx";
import { Story } from "./story.tsx";
import { Suspects } from "./suspects.tsx";
import { THEME_STYLE } from "./theme.ts";
import { Timeline } from "./timeline.tsx";
import { headOfIncident, VerdictHead } from "./verdict-head.tsx";

const slow = slowGpu();

/** Words of the markup, one space between them. */
function words(markup: string): string {
  return markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

function barsOf(hop: StoryHop): { role: string; left: number; right: number }[] {
  const { text } = markupOf(StoryBars, { hop });
  let role = "";
  return readTags(text).flatMap(({ name, attributes }) => {
    if (name === "g") role = attributes.get("class")!;
    if (name !== "rect") return [];
    const left = Number(attributes.get("x"));
    return [{ role, left, right: left + Number(attributes.get("width")) }];
  });
}

describe("the story", () => {
  test("ends all bars of an operator at one line, which is now", () => {
    const bars = barsOf(standstill().picture.story!.hops[0]!);
    expect(bars).toHaveLength(64);
    for (const { right } of bars) expect(right).toBeCloseTo(bars[0]!.right, 0);
  });

  test("shows by the shortest bar who waits least in operators", () => {
    const bars = barsOf(slow.picture.story!.hops[0]!);
    expect(bars.toSorted((a, b) => a.right - b.right)[0]!.role).toBe("sb-late");
  });

  test("begins all bars of own time at one line, with a mark for what it was before", () => {
    const hop = slow.picture.story!.hops[1]!;
    const bars = barsOf(hop);
    for (const { left } of bars) expect(left).toBe(bars[0]!.left);
    expect(bars.toSorted((a, b) => b.right - a.right)[0]!.role).toBe("sb-late");
    expect(markupOf(StoryBars, { hop }).text.match(/class="sb-before"/g)).toHaveLength(16);
  });

  test("names among many only those it is about and the ends of the group", () => {
    const [hop] = standstill().picture.story!.hops;
    const bars = hop!.bars.map((bar) => ({ ...bar, role: "waits" as const }));
    const { text } = markupOf(StoryBars, { hop: { ...hop!, from: 3, to: 49, bars } });
    const names = [...text.matchAll(/class="sb-name[^>]*>([^<]*)</g)].map(([, name]) => name);
    expect(names).toEqual([
      "rank 0 node000",
      "▸ rank 3 node000",
      "rank 49 node006",
      "rank 63 node007",
    ]);
  });

  test("shows who never arrived as an empty place, and that nothing has ended", () => {
    const { story } = standstill().picture;
    const { text } = markupOf(Story, { story: story! });
    expect(text.match(/<g class="sb-absent">/g)).toHaveLength(8);
    expect(words(text)).toContain("never arrived");
    expect(words(text)).toContain("not ended");
    expect(words(text)).toContain("192 more members, not drawn.");
    expect(text).toContain("8 of 64 never arrived.");
  });

  test("leads from each operator to the next, of a hang alone", () => {
    const [hop] = standstill().picture.story!.hops;
    const { text } = markupOf(Story, { story: { hops: [hop!, hop!], ends: "" } });
    expect(words(text).match(/leads to rank 24 →/g)).toHaveLength(1);
    expect(markupOf(Story, { story: slow.picture.story! }).text).not.toContain("leads to");
  });

  test("names a slow wire and its like", () => {
    const bar = { rank: 2, machine: null, ms: 62, beforeMs: 4, role: "late" } as const;
    const bars = [
      { ...bar, label: "link 2–10" },
      { ...bar, rank: 3, ms: 4, label: "link 3–11", role: "waits" as const },
    ];
    const hop = { ...slow.picture.story!.hops[0]!, kind: "wires" as const, bars };
    const { text } = markupOf(Story, { story: { hops: [hop], ends: "" } });
    expect(words(text)).toContain("takes longer than its like");
    expect(words(text)).toContain("link 2–10 – 62 ms 4 ms slow");
  });

  test("says in words what is drawn, and has all figures in a table", () => {
    const { text } = markupOf(Story, { story: slow.picture.story! });
    expect(text).toMatch(
      /aria-label="time in operators, of an iteration: DATA_PARALLEL_1: Rank 17/,
    );
    expect(text.match(/<tr>/g)).toHaveLength(2 + 16 + 16);
    expect(words(text)).toContain(slow.picture.story!.ends);
  });

  test("has no number that is none, whatever the figures are", () => {
    for (const ms of [0, NaN, -5, Infinity, 1e300, 1e-300]) {
      const bars = [0, 1].map((rank): StoryBar => ({
        rank,
        machine: null,
        ms,
        beforeMs: ms,
        role: "waits",
      }));
      for (const kind of ["own", "wires", "collective"] as const) {
        const hop = { ...slow.picture.story!.hops[0]!, kind, bars };
        expect(markupOf(StoryBars, { hop }).text).not.toMatch(/NaN|Infinity|undefined/);
      }
    }
  });
});

describe("suspects", () => {
  test("come with the first one prominent and the unlikely ones folded", () => {
    const { text } = markupOf(Suspects, { verdict: slow.verdict });
    expect(text.indexOf("fl-first")).toBeLessThan(text.indexOf("<details"));
    expect(text.slice(0, text.indexOf("<details")).match(/<article/g)).toHaveLength(1);
    expect(words(text)).toContain("5 less likely suspects");
    expect(words(text)).toContain("Its GPU computes slower than it should gpu-slow");
    expect(words(text)).toContain("Only waiting, not at fault: ranks 0–16, 18–63.");
  });

  test("say where their GPU is, when somebody knows", () => {
    const placeOf = (): { gpu: number; pid: number } => ({ gpu: 1, pid: 4017 });
    expect(words(markupOf(Suspects, { verdict: slow.verdict, placeOf }).text)).toContain(
      "GPU 1 · pid 4017",
    );
  });
});

describe("how a verdict came about", () => {
  const { verdict } = reasonedSlowGpu();
  const shownIn = (id: string): { id: string; name: string } | null =>
    id === "f1" ? { id: "story", name: "How it spread" } : null;
  const { text } = markupOf(Reasoning, { verdict, shownIn });

  test("is what decided with place and link, the strongest first, and no rival number", () => {
    expect(words(text)).toMatch(/780 MHz.*rank 17&#39;s own/);
    expect(text.match(/<ol class="fl-decided">[^]*?<\/ol>/)![0].match(/<li>/g)).toHaveLength(2);
    expect(words(text)).toContain("/run/42/rank17.log:4 How it spread");
    expect(text).toContain('<a href="#story">');
    expect(words(text)).not.toMatch(/likelier|weight|score|\d %|\bf\d\b/);
  });

  test("is who disagrees and why that was not believed; links lead only to what is there", () => {
    expect(words(text)).toContain("node005 The network is slower than it should be");
    expect(words(text)).toContain(
      "Less likely: it got slow four minutes after the iterations did.",
    );
    const links = readTags(text).flatMap(({ attributes }) => attributes.get("href") ?? []);
    expect(links).toEqual(["#story"]);
  });

  test("is what would change it, with commands to copy", () => {
    expect(text).toContain("<code>dmesg | grep -i xid</code>");
  });

  test("is nothing for a verdict that does not say", () => {
    expect(hasReasoning(slow.verdict)).toBe(false);
    expect(markupOf(Reasoning, { verdict: slow.verdict }).text).toBe("");
    const reasoning = { decidedBy: [], conflicts: [], wouldChange: [], prior: null };
    expect(markupOf(Reasoning, { verdict: { ...slow.verdict, reasoning } }).text).toBe("");
  });

  test("has an end, however much there is", () => {
    const { reasoning } = verdict;
    const many = {
      ...reasoning!,
      conflicts: Array.from({ length: 500 }, () => reasoning!.conflicts[0]!),
      wouldChange: Array.from({ length: 500 }, () => "x".repeat(10_000)),
    };
    const long = markupOf(Reasoning, { verdict: { ...verdict, reasoning: many } }).text;
    expect(long.length).toBeLessThan(20_000);
    expect(words(long)).toContain("494 more of them in verdict.json.");
  });
});

describe("actions", () => {
  const [one] = slow.incident.actions;
  const shown = (actions: readonly IncidentAction[]): string =>
    words(markupOf(IncidentActions, { actions, verdict: slow.verdict }).text);

  test("keep their places, whatever becomes of one of them", () => {
    const all = ["exclude-node", "check-storage", "cordon-node"].map((word, k) => ({
      ...one!,
      id: `a${k}`,
      do: word,
    }));
    const before = shown(all).match(/Cordon the node|Exclude the node|Check the storage/g);
    const after = shown([all[1]!, all[2]!, { ...all[0]!, state: "failed" as const }]);
    expect(after.match(/Cordon the node|Exclude the node|Check the storage/g)).toEqual(before);
    expect(before![0]).toBe("Cordon the node");
  });

  test("that were only tried say that nothing was changed, as a sentence", () => {
    const would = 'run ["scontrol","update","nodename=node003"] within 60 s';
    const text = shown([{ ...one!, state: "dry-run", outcome: "", would }]);
    expect(text).toContain("dry run: nothing was changed");
    expect(text).toContain(
      "Dry run: nothing was changed. It would run scontrol update nodename=node003 (within 60 s).",
    );
    expect(text).not.toMatch(/tried without effect|\[|&quot;/);
  });

  test("that failed say so, also after a dry run", () => {
    const failed = { ...one!, state: "failed", outcome: "exit status 1: no such node" } as const;
    const text = shown([{ ...failed, would: "post to x within 5 s: {}" }]);
    expect(text).toContain("exit status 1: no such node. A dry run since then: it would ask x");
    expect(text).not.toContain("nothing was changed");
  });

  test("that only look at something promise no percent", () => {
    expect(shown([{ ...one!, do: "check-storage", target: "x", state: "proposed" }])).not.toContain(
      "Expected",
    );
  });

  test("say what they are expected to bring where the plan knows", () => {
    const { actions } = slow.verdict;
    const text = words(markupOf(Actions, { actions, verdict: slow.verdict }).text);
    expect(text).toContain("Expected: 497 ms → 262 ms per iteration, 47 % less");
    expect(text.match(/Expected/g)).toHaveLength(1);
  });

  test("of an incident show state, outcome and the buttons they are given", () => {
    const { text } = markupOf(IncidentActions, {
      actions: slow.incident.actions,
      verdict: slow.verdict,
      buttons: ({ id }) => `button of ${id}`,
    });
    expect(words(text)).toContain("button of a1");
    expect(words(text)).toContain("scontrol: permission denied");
    expect(words(text)).toContain("497 ms → 331 ms");
  });
});

test("an incident without a verdict has a head without confidence", () => {
  const verdict = headOfIncident({ ...slow.incident, verdict: null, state: "suspected" });
  const text = words(markupOf(VerdictHead, { verdict }).text);
  expect(text).not.toContain("Confidence");
  expect(text).toContain("Since 2026-11-15 00:41:49 UTC");
});

describe("log lines", () => {
  const { text } = markupOf(LogLines, { logs: slow.picture.logs });
  test("mark key lines by a sign and in words, and say what is left out", () => {
    expect(text.match(/<span class="fl-hidden">key line<\/span>/g)).toHaveLength(2);
    expect(words(text)).toContain("lines 4,014–4,019 left out");
    expect(words(text)).toContain("×1,204");
  });
  test("fold what is long and lose nothing of it", () => {
    const long = slow.picture.logs[0]!.lines[3]!.text;
    const folded = /<details class="fl-text fl-long">([^]*?)<\/details>/.exec(text)![1]!;
    const codes = [...folded.matchAll(/<code>([^<]*)<\/code>/g)].map(([, part]) => part);
    expect(codes.join("")).toBe(long);
  });
  test("keep a stranger's tags and marks as text", () => {
    expect(text).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; \uFFFDgnp.exe\uFFFD");
  });
});

test("metrics say the machine's level beside its peers', of the time in question", () => {
  const [clock, , , gone] = slow.picture.metrics;
  expect(figureWordsOf(clock!)).toMatch(/^7\d\d MHz, peers 1\.7\d GHz$/);
  expect(figureWordsOf(gone!)).toMatch(/^no sample, peers 9\.\d+ GB\/s$/);
  const { text } = markupOf(Metrics, { pictures: slow.picture.metrics });
  expect(text.match(/class="machine-plot"/g)).toHaveLength(4);
});

test("a timeline that came as JSON is drawn as the one that was sent", () => {
  const timeline = slow.picture.timeline!;
  const wired = JSON.parse(JSON.stringify(timeline)) as typeof timeline;
  const drawn = markupOf(Timeline, { timeline }).text;
  expect(markupOf(Timeline, { timeline: wired }).text).toBe(drawn);
  expect(drawn).toContain('class="matrix"');
});

test("only markup of the escaping tag is put in as markup", () => {
  expect(markupOf(Drawn, { markup: html`<b>${"<"}</b>` }).text).toBe(
    '<div class="fl-drawn"><b>&lt;</b></div>',
  );
  const fake = JSON.parse('{"text":"<script>"}') as ReturnType<typeof html>;
  expect(markupOf(Drawn, { markup: fake }).text).toBe("");
});

test("evidence keeps what suspects rest on, with its data folded", () => {
  const text = words(markupOf(Evidence, { verdict: slow.verdict }).text);
  expect(text).toContain("Data of f1, slow/judge");
  expect(text).toContain("/run/42/rank17.log:4");
});

test("log lines and plots are in the zone that is asked for, and say which it is", () => {
  const zone = { name: () => "UTC+5:30", aheadMinutes: () => 330 };
  const { logs, metrics } = slow.picture;
  expect(words(markupOf(LogLines, { logs }).text)).toContain("times in UTC ");
  const lines = words(markupOf(LogLines, { logs, zone }).text);
  expect(lines).toContain("2026-11-15, times in UTC+5:30");
  const plots = markupOf(Metrics, { pictures: metrics, zone }).text;
  expect(words(plots)).toContain("all times UTC+5:30,");
  expect(plots).toContain("since 06:11:49");
  expect(plots).not.toMatch(/UTC[^+]/);
});

describe("the style", () => {
  test("a chosen dark theme is for screens: paper is light", () => {
    expect(THEME_STYLE).toMatch(/@media screen \{ :root\[data-theme="dark"\]/);
  });

  test("selects nothing but classes of its own, and knows every colour it uses", () => {
    const rules = PARTS_STYLE.replace(/@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}/g, "$1");
    const selectors = [...rules.matchAll(/([^{}]+)\{[^{}]*\}/g)].flatMap(([, list]) =>
      list!.split(","),
    );
    expect(selectors.length).toBeGreaterThan(100);
    for (const selector of selectors) expect(selector.trim()).toMatch(/^\./);
    const known = new Set([...THEME_STYLE.matchAll(/(--[\w-]+):/g)].map(([, name]) => name));
    for (const [, name] of PARTS_STYLE.matchAll(/var\((--[\w-]+)\)/g))
      if (!name!.startsWith("--tone")) expect(known).toContain(name);
  });
});
