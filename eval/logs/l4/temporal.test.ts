import { describe, expect, it } from "vitest";
import {
  digestOf,
  identityTemplates,
  type TestLine,
} from "../../../test/support/methods/log-digest.ts";
import { l4Temporal } from "./temporal.ts";

const START = Date.UTC(2026, 0, 1);

/** Iterations of three lines each, one in five seconds; `extra` adds lines. */
function run(iterations: number, extra: (i: number) => readonly string[]): TestLine[] {
  const lines: TestLine[] = [{ file: "a.log", text: "starting", timeMs: START }];
  for (let i = 1; i <= iterations; i++) {
    const timeMs = START + (i - 1) * 5000;
    lines.push({ file: "a.log", text: `iteration ${i} done`, timeMs, iteration: i });
    for (const text of ["timers forward 3", "memory 40 GiB", ...extra(i)])
      lines.push({ file: "a.log", text, timeMs: timeMs + 10 });
  }
  return lines;
}

describe("iterations by L4's rule", () => {
  const none = new Uint8Array(100);

  it("finds the one whose events differ from the ten before", () => {
    const digest = digestOf(run(40, (i) => (i === 33 ? ["notify wait failed", "retry"] : [])));
    const odd = l4Temporal(digest, identityTemplates(digest), none);
    expect(odd.map(({ iteration }) => iteration)).toContain(33);
    expect(odd[0]!.similarity).toBeLessThan(0.7);
  });

  it("leaves out what the cross-job filter took", () => {
    const digest = digestOf(run(40, (i) => (i === 33 ? ["known noise"] : [])));
    const templates = identityTemplates(digest);
    const isLeftOut = Uint8Array.from(templates.texts, (text) => Number(text === "known noise"));
    expect(l4Temporal(digest, templates, isLeftOut)).toEqual([]);
  });

  it("is blind with few iterations, which is why the product's comparison is not", () => {
    const digest = digestOf(run(5, (i) => (i === 5 ? ["link lost"] : [])));
    expect(l4Temporal(digest, identityTemplates(digest), none)).toEqual([]);
  });
});
