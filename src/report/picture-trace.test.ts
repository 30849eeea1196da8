import { expect, test } from "vitest";
import { groupBy } from "../base/group-by.ts";
import { slowGpu, standstill } from "../../test/support/report/picture.ts";
import { pictureTrace } from "./picture-trace.ts";

interface Event {
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  readonly name: string;
  readonly args?: Record<string, unknown>;
}

function read(text: string): { events: Event[]; other: Record<string, string> } {
  const { traceEvents, otherData } = JSON.parse(text) as {
    traceEvents: Event[];
    otherData: Record<string, string>;
  };
  return { events: traceEvents, other: otherData };
}

const { picture, verdict } = slowGpu();
const { events, other } = read(pictureTrace(picture, verdict));
const slices = (name: string): Event[] =>
  events.filter((one) => one.ph === "X" && one.name.startsWith(name));

test("a process is a rank, named with its machine", () => {
  expect(events.filter((one) => one.name === "process_name" && one.pid === 17)).toMatchObject([
    { args: { name: "rank 17 on node002" } },
  ]);
});

test("all ranks leave operators at the same moment, and the slow one came last", () => {
  const inside = slices("time in operators");
  const ends = inside.map(({ ts, dur }) => ts + dur!);
  expect(ends).toHaveLength(16);
  for (const end of ends) expect(end).toBeCloseTo(ends[0]!, 2);
  const last = inside.toSorted((a, b) => b.ts - a.ts)[0]!;
  expect(last).toMatchObject({ pid: 17, dur: 85_000, args: { role: "late" } });
});

test("the first cause comes first: own time, then what the others wait in", () => {
  const start = (name: string): number => Math.min(...slices(name).map(({ ts }) => ts));
  expect(start("time outside")).toBe(0);
  expect(start("time outside")).toBeLessThan(start("time in operators"));
});

test("slices of one track never overlap, and tracks have numbers of their own", () => {
  const byTrack = groupBy(
    events.filter(({ ph }) => ph === "X"),
    ({ tid }) => tid,
  );
  expect(byTrack.size).toBeGreaterThan(2 * 16);
  for (const list of byTrack.values()) {
    expect(new Set(list.map(({ pid }) => pid)).size).toBe(1);
    const sorted = list.toSorted((a, b) => a.ts - b.ts);
    for (const [i, { ts }] of sorted.entries())
      if (i > 0) expect(ts).toBeGreaterThanOrEqual(sorted[i - 1]!.ts + sorted[i - 1]!.dur! - 0.01);
  }
});

test("who never arrived has a mark instead of a slice, and times are said to be relative", () => {
  const hang = standstill();
  const { events: of } = read(pictureTrace(hang.picture, hang.verdict));
  expect(of.filter(({ ph }) => ph === "i").map(({ pid }) => pid)).toEqual([
    24, 25, 26, 27, 28, 29, 30, 31,
  ]);
  expect(other["times"]).toMatch(/^relative/);
});

test("the same comes of a picture that came as JSON, and strangers' texts stay short and plain", () => {
  const wired = JSON.parse(JSON.stringify(picture)) as typeof picture;
  expect(pictureTrace(wired, verdict)).toBe(pictureTrace(picture, verdict));
  const bad = slowGpu((plain) => `${plain}\u202e${"x".repeat(100_000)}`);
  const text = pictureTrace(bad.picture, bad.verdict);
  expect(text).not.toContain("\u202e");
  expect(text.length).toBeLessThan(500_000);
});

test("an empty picture gives a trace without events", () => {
  const empty = { ...picture, story: null, timeline: null };
  expect(read(pictureTrace(empty, verdict)).events).toEqual([]);
});
