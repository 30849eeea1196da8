import { describe, expect, it } from "vitest";
import type { FlightDump } from "../model/operators.ts";
import { emptyRow, GrowingColumns } from "./operators-file/growing-columns.ts";
import { dumpsOfOtherRuns } from "./other-runs.ts";

const RANKS = [0, 1, 2, 3];

/** A run's calls: about every 200 ms, as long apart as chance has it, and the same on all ranks. */
function run(startMs: number, seed: number, calls = 120): number[] {
  let state = seed;
  let at = startMs;
  return Array.from({ length: calls }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (at += 150 + (100 * state) / 2 ** 32);
  });
}

function dump(calledMs: readonly number[], firstSeq = 1): FlightDump {
  const columns = new GrowingColumns();
  const row = emptyRow();
  for (const [k, ms] of calledMs.entries()) {
    row.seq = firstSeq + k;
    row.createdNs = ms * 1e6;
    columns.add(row);
  }
  const ops = columns.build(false);
  const recordId = ops.recordId.map((id) => firstSeq + id);
  const counters = { enqueued: -1, started: -1, completed: -1 };
  return {
    file: "f",
    version: "2.9",
    groups: [{ name: "0", desc: "", ranks: RANKS, ...counters }],
    ops: { ...ops, recordId },
    epochNs: 0n,
    timing: true,
    timeoutMs: 0,
    isCut: false,
    frames: new Map(),
  };
}

const HOUR_MS = 3_600_000;
const of = (dumps: FlightDump[]): number[] => dumpsOfOtherRuns(new Map(dumps.entries()));

describe("dumps of another run", () => {
  const calls = run(0, 1);

  it("are those that make the same calls at another time, unlike the rest", () => {
    const earlier = dump(run(-HOUR_MS, 2));
    expect(of([dump(calls), dump(calls), earlier, dump(calls)])).toEqual([2]);
    expect(of([dump(calls), dump(calls), dump(calls), dump(calls)])).toEqual([]);
  });

  it("are not those of a machine whose clock is off: it is off by as much all the time", () => {
    const off = dump(calls.map((ms) => ms + HOUR_MS * (1 + 1e-7)));
    expect(of([dump(calls), off, dump(calls), dump(calls)])).toEqual([]);
  });

  it("are the older ones where both are as many", () => {
    const earlier = dump(run(-HOUR_MS, 2));
    expect(of([earlier, earlier, dump(calls), dump(calls)])).toEqual([0, 1]);
    expect(of([dump(calls), dump(calls), earlier, earlier])).toEqual([2, 3]);
  });

  it("are not told where a rank was asked later and shows other calls", () => {
    const later = dump(run(HOUR_MS, 3), 10_000);
    expect(of([dump(calls), later, dump(calls), dump(calls)])).toEqual([]);
  });

  it("are believed to be where too little was recorded to know a clock by", () => {
    const short = (ms: number): FlightDump => dump(calls.slice(0, 12).map((one) => one + ms));
    expect(of([short(0), short(0), short(-HOUR_MS), short(0)])).toEqual([2]);
  });
});
