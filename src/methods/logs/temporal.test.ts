import { describe, expect, it } from "vitest";
import { compareIterations, type TemporalResult } from "./temporal.ts";
import {
  digestOf,
  identityTemplates,
  type TestLine,
} from "../../../test/support/methods/log-digest.ts";

const START = Date.UTC(2026, 0, 1);

/** Iterations of three lines each; `extra` adds lines, `seconds` says how long one takes. */
function run(
  iterations: number,
  extra: (i: number) => readonly string[] = () => [],
  seconds: (i: number) => number = () => 5,
): TestLine[] {
  const lines: TestLine[] = [{ file: "a.log", text: "starting", timeMs: START }];
  let timeMs = START;
  for (let i = 1; i <= iterations; i++) {
    lines.push({ file: "a.log", text: `iteration ${i} done`, timeMs, iteration: i });
    for (const text of ["timers forward 3", "memory 40 GiB", ...extra(i)])
      lines.push({ file: "a.log", text, timeMs: timeMs + 10 });
    timeMs += seconds(i) * 1000;
  }
  return lines;
}

function compared(lines: readonly TestLine[]): TemporalResult & { texts: readonly string[] } {
  const digest = digestOf(lines);
  const templates = identityTemplates(digest);
  return { ...compareIterations(digest, templates), texts: templates.texts };
}

describe("iterations that differ", () => {
  it("names what is new at the end, with few iterations before", () => {
    const { iterations, events, texts } = compared(run(4, (i) => (i === 4 ? ["link lost"] : [])));
    expect(iterations[0]).toMatchObject({ iteration: 4, why: ["new"] });
    expect(iterations[0]!.score).toBeGreaterThan(0.3);
    expect(events.map(({ template }) => texts[template])).toEqual(["link lost"]);
  });

  it("sees what is new in files that report nothing, by the clock", () => {
    const lines = run(12);
    const { timeMs } = lines.find(({ iteration }) => iteration === 12)!;
    const other = { file: "b.log", text: "ERROR device 3 gone", timeMs: timeMs! + 900 };
    const { iterations } = compared([...lines, other]);
    expect(iterations[0]).toMatchObject({ iteration: 12, why: ["new"] });
  });

  it("goes without times", () => {
    const lines = run(9, (i) => (i === 9 ? ["link lost"] : [])).map((line) => ({
      ...line,
      timeMs: NaN,
    }));
    const { iterations } = compared(lines);
    expect(iterations[0]).toMatchObject({ iteration: 9, times: NaN });
    expect(iterations[0]!.score).toBeGreaterThan(0.3);
  });

  it("takes what came early and did no harm for old", () => {
    const { events } = compared(run(20, (i) => (i === 6 || i === 20 ? ["retry 3"] : [])));
    expect(events).toEqual([]);
  });

  it("sees an iteration without what all others have", () => {
    const lines = run(12).filter(({ text }, i) => text !== "memory 40 GiB" || i !== 3 * 8 + 3);
    const { iterations, texts } = compared(lines);
    expect(iterations[0]).toMatchObject({ iteration: 9, why: ["missing"] });
    expect(iterations[0]!.events.map((t) => texts[t])).toEqual(["memory 0 GiB"]);
  });

  it("sees an iteration that takes three times as long", () => {
    const { iterations } = compared(run(15, undefined, (i) => (i === 11 ? 15 : 5 + (i % 2) * 0.1)));
    expect(iterations[0]).toMatchObject({ iteration: 11, why: ["slow"] });
    expect(iterations[0]!.times).toBeCloseTo(3, 0);
  });

  it("finds nothing odd in a run that repeats itself, and nothing in no run", () => {
    expect(compared(run(30)).iterations).toEqual([]);
    expect(compared([{ file: "a.log", text: "hello" }]).iterations).toEqual([]);
  });

  it("goes by the end of the log where no iteration is told of", () => {
    const lines = Array.from({ length: 30 }, (_, i) => ({
      file: "a.log",
      text: `boot ${"x".repeat(i)}`,
    }));
    const { events, texts } = compared([...lines, { file: "a.log", text: "gone" }]);
    expect(texts[events[0]!.template]).toBe("gone");
    expect(events.length).toBeLessThan(20);
    expect(events[0]!.score).toBeGreaterThan(events.at(-1)!.score);
  });
});
