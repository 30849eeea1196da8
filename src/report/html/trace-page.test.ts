import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { profileRun } from "../../methods/traces/profile-run.ts";
import { timelinePicture } from "../../methods/traces/pictures/timeline.ts";
import { testTrace, type TestKernel } from "../../../test/support/methods/kernel-trace.ts";
import * as K from "../../model/kernels.ts";
import type { Regression } from "../../model/regression.ts";
import { barOf } from "./trace-breakdown.ts";
import { cdfPoints } from "./trace-cdf.ts";
import { renderTracePage } from "./trace-page.ts";
import { stackRuns } from "./trace-timeline.ts";
import { readTags } from "../../../test/support/report/tag-check.ts";
import { runs } from "../../../test/support/cases.ts";

const HOSTILE = [
  `<script>alert(1)</script>`,
  `"><img src=x onerror=alert(1)>`,
  `</title></style></script></svg></pre><h1>owned</h1>`,
  `\u0000\u001b[31m\u202e\ud800 x`,
];

function rankTrace(rank: number, text: string, kernels = 40): K.RankKernels {
  const wild = (k: number): number => ((k * 2_654_435_761 + rank * 97) >>> 0) % 97;
  const list: TestKernel[] = [];
  for (let k = 0, at = 20; k < kernels; k++) {
    const dur = 5 + (wild(k) % 40);
    const isCollective = wild(k) % 5 === 0;
    list.push({
      name: `${isCollective ? "nccl" : wild(k) % 3 === 0 ? "gemm" : "add"} ${text}`,
      at,
      dur,
      issued: at - (wild(k + 1) % 60),
      stream: isCollective ? 20 : 7,
      ...(isCollective
        ? { collective: { operation: `allreduce${text}`, ranks: [0, 1], numel: 4, seq: k } }
        : {}),
    });
    at += dur + (wild(k + 2) % 25);
  }
  const end = list.at(-1)!.at + 100;
  return {
    ...testTrace({
      rank,
      steps: [
        [0, end / 2],
        [end / 2, end / 2],
      ],
      kernels: list,
      calls: [{ name: `cudaMalloc ${text}`, kind: K.ALLOCATE, at: 30, dur: end / 3 }],
      host: [{ name: `loader ${text}`, kind: K.DATA_LOADER, at: end / 2, dur: end / 9 }],
    }),
    file: `${text}.json`,
  };
}

function page(text: string, kernels: readonly K.RankKernels[], isHeldAgainst = true): string {
  const run = profileRun(kernels, text)!;
  const healthy = isHeldAgainst ? [run] : [];
  const regression: Regression = {
    cause: "synchronization",
    owner: "algorithm",
    ranks: [0],
    metric: "issueLatency",
    value: 1,
    baseline: 2,
    share: 0.032,
    why: `cudaDeviceSynchronize ${text}`,
    at: [{ file: text }],
    threshold: text,
    weight: 0.9,
  };
  const regressions = isHeldAgainst ? [regression] : [];
  const report = {
    run,
    baseline: healthy.map(({ source }) => source),
    regressions,
    distanceMs: new Map([[0, 3]]),
    notes: [text],
    missing: [text],
  };
  const timeline = timelinePicture(kernels, run, regressions);
  return renderTracePage({ report, healthy, timeline, text });
}

/** Words of the markup, one space between them. */
function words(markup: string): string {
  return markup.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
}

describe("the page of kernel timelines", () => {
  test.each(HOSTILE)("keeps strangers' names as text: %j", (hostile) => {
    const text = page(hostile, [rankTrace(0, hostile), rankTrace(1, hostile)]);
    const tags = readTags(text);
    for (const name of ["script", "style", "h1"])
      expect(tags.filter((tag) => tag.name === name)).toHaveLength(1);
    expect(tags.some(({ name }) => name === "img")).toBe(false);
    for (const { attributes } of tags)
      for (const name of attributes.keys()) expect(name).not.toMatch(/^on|^style$|^src$/);
    expect(text).not.toMatch(/https?:|url\(/);
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]|\p{Cs}/u);
  });

  test("begins with what is slower in words, then shows the pictures with no id twice", () => {
    const text = page("run", [rankTrace(0, "a"), rankTrace(1, "a")]);
    expect(words(text.slice(text.indexOf("<header")))).toMatch(
      /^ ?synchronization: 3.2 % of the step on rank 0/,
    );
    const ids = readTags(text).flatMap(({ attributes }) => attributes.get("id") ?? []);
    expect(ids).toEqual(["suspects", "timeline", "latency", "breakdown", "notes", "figures"]);
    for (const link of readTags(text).flatMap(({ attributes }) => attributes.get("href") ?? []))
      expect(ids).toContain(link.slice(1));
    expect(words(text)).toContain("exposed communication");
    expect(words(text)).toContain("baseline");
  });

  test("draws no baseline where there is none", () => {
    const text = page("run", [rankTrace(0, "a"), rankTrace(1, "a")], false);
    readTags(text);
    expect(words(text)).toContain("no baseline given");
    expect(text).not.toContain('class="cdf base"');
  });

  test("stays below 2 MB for sixteen ranks with 20,000 kernels a step", () => {
    const trace = rankTrace(0, "k", runs(4000, 40_000));
    const kernels = Array.from({ length: 16 }, (_, rank) => ({ ...trace, rank }));
    const text = page("run", kernels);
    readTags(text);
    expect(text.match(/class="name"[^>]*>rank/g)!.length).toBe(32);
    expect(Buffer.byteLength(text)).toBeLessThan(2_000_000);
  });

  test("is the same for the same input", () => {
    expect(page("x", [rankTrace(0, "a")])).toBe(page("x", [rankTrace(0, "a")]));
  });
});

describe("stacked columns", () => {
  const shares = fc.array(
    fc.tuple(
      fc.double({ min: 0, max: 0.5, noNaN: true }),
      fc.double({ min: 0, max: 0.5, noNaN: true }),
    ),
    { minLength: 1, maxLength: 60 },
  );

  test("never overlap, never leave the row, and are as large as the time they stand for", () => {
    fc.assert(
      fc.property(shares, (list) => {
        const columns = [0, 1].map((k) => Float32Array.from(list, (pair) => pair[k]!));
        const levels = 24;
        const taken = new Set<number>();
        const runs = stackRuns(columns, levels);
        for (const run of runs.flat())
          for (let part = run.from; part < run.to; part++)
            for (let level = run.bottom; level < run.top; level++) {
              expect(level).toBeLessThan(levels);
              expect(taken.has(part * levels + level)).toBe(false);
              taken.add(part * levels + level);
            }
        const time = list.reduce((sum, [a, b]) => sum + a + b, 0) * levels;
        expect(Math.abs(taken.size - time)).toBeLessThanOrEqual(0.5 * list.length + 1e-3);
      }),
    );
  });
});

describe("the lines of issue latencies", () => {
  test("rise from the first kernel to all of them and never fall", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e4, noNaN: true }), { minLength: 1, maxLength: 900 }),
        (values) => {
          const points = cdfPoints(
            values.toSorted((a, b) => a - b),
            256,
          );
          expect(points.length).toBeLessThanOrEqual(256);
          expect(points.at(-1)!.share).toBe(1);
          for (const [i, { ms, share }] of points.entries()) {
            expect(ms).toBeGreaterThanOrEqual(points[i - 1]?.ms ?? 0);
            expect(share).toBeGreaterThan(points[i - 1]?.share ?? 0);
          }
        },
      ),
    );
  });
});

describe("a rank's bar", () => {
  test("is as long as its step", () => {
    const bar = barOf(profileRun([rankTrace(0, "a")], "")!.ranks)!;
    expect(Object.values(bar.ms).reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(bar.stepMs, 9);
  });

  test("is none for a profile that was stored without it", () => {
    const { breakdown: _, ...stored } = profileRun([rankTrace(0, "a")], "")!.ranks[0]!;
    expect(barOf([stored])).toBeNull();
  });
});
