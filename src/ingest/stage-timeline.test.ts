import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading } from "../model/reading.ts";
import { recognise } from "./formats.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { stageTimeline } from "./stage-timeline.ts";

interface Event {
  readonly name: string;
  readonly replica?: number;
  readonly rank: number;
  readonly lane?: number;
  readonly us?: number;
  readonly durationUs?: number;
  readonly microBatch?: number | null;
  readonly seq?: number;
}

/** As to_timeline.py writes it: five threads a rank, the replica as process. */
function event({ name, replica = 0, rank, lane = 0, us = 0, durationUs = 1, ...more }: Event) {
  const { microBatch = -1, seq = 0 } = more;
  const args = {
    step: 23,
    model_chunk: microBatch === -1 ? -1 : 0,
    mb_id: microBatch,
    seq_id: seq,
  };
  const tid = rank * 5 + lane;
  return { name, cat: name, pid: replica, tid, ts: us, dur: durationUs, ph: "X", args };
}

const threadName = (replica: number, rank: number, stage: number) => ({
  name: "thread_name",
  pid: replica,
  tid: rank * 5,
  ph: "M",
  args: { name: `PP rank ${stage}, TP rank 0, compute` },
});

/** Two replicas of two stages; ranks are given to stages in an order that nobody would guess. */
const EVENTS = [
  event({ name: "forward-compute", rank: 0, us: 48_943.5, durationUs: 63_458.9, microBatch: 0 }),
  event({ name: "forward-send", rank: 0, lane: 1, us: 112_404, durationUs: -12.5 }),
  event({ name: "forward-recv", rank: 1, lane: 1, us: 112_404.5, durationUs: 400 }),
  event({ name: "backward-compute", rank: 1, us: 2e5, durationUs: 1e5, microBatch: 3, seq: 3 }),
  event({ name: "gc", replica: 1, rank: 2, us: 3e5, microBatch: null }),
  event({ name: "optimizer", replica: 1, rank: 3, us: 4e5, durationUs: 40_000 }),
];
const NAMES = [threadName(0, 0, 1), threadName(0, 1, 0), threadName(1, 2, 1), threadName(1, 3, 0)];
const TEXT = JSON.stringify([...EVENTS, ...NAMES]);

const read = (text: string): Reading => readBytes(stageTimeline, "timeline.json", text);

describe("a timeline of pipeline stages", () => {
  it("becomes columns: replica from the process, rank from the thread, stage from its name", () => {
    const { records, defects, stageOperations } = read(TEXT);
    expect(records).toBe(6);
    expect(defects).toEqual([]);
    const [ops] = stageOperations!;
    expect(ops).toMatchObject({ file: "timeline.json", format: "stage-timeline", writer: null });
    expect([...ops!.rank]).toEqual([0, 0, 1, 1, 2, 3]);
    expect([...ops!.replica]).toEqual([0, 0, 0, 0, 1, 1]);
    expect([...ops!.stage]).toEqual([1, 1, 0, 0, 1, 0]);
    expect([...ops!.step]).toEqual([23, 23, 23, 23, 23, 23]);
    expect([...ops!.kind].map((kind) => ops!.kinds[kind])).toEqual(EVENTS.map(({ name }) => name));
    expect([...ops!.microBatch]).toEqual([0, -1, -1, 3, -1, -1]);
    expect([...ops!.chunk]).toEqual([0, -1, -1, 0, 0, -1]);
    expect([...ops!.seq]).toEqual([0, 0, 0, 3, 0, 0]);
    expect(ops!.startMs[0]).toBeCloseTo(48.9435, 9);
    expect(ops!.durationMs[0]).toBeCloseTo(63.4589, 9);
    expect(ops!.durationMs[1]).toBeCloseTo(-0.0125, 9);
  });

  it("is read alike at all chunk sizes, and without an exception when cut anywhere", () => {
    const [first, ...rest] = readAtAllSizes(stageTimeline, "timeline.json", TEXT);
    for (const reading of rest) expect(reading).toEqual(first);
    const cut = readCutEverywhere(stageTimeline, "timeline.json", TEXT);
    expect(cut.at(-1)).toEqual(first);
    for (const [at, { records, defects }] of cut.entries()) {
      expect(records).toBeLessThanOrEqual(6);
      if (at > 0 && at < TEXT.length) expect(defects.length).toBeGreaterThan(0);
    }
  });

  it("survives random bytes in its middle", () => {
    fc.assert(
      fc.property(fc.nat(TEXT.length), fc.uint8Array({ maxLength: 40 }), (at, noise) => {
        const bytes = Buffer.concat([
          Buffer.from(TEXT.slice(0, at)),
          noise,
          Buffer.from(TEXT.slice(at)),
        ]);
        const { records, stageOperations } = readBytes(stageTimeline, "timeline.json", bytes);
        expect(stageOperations?.[0]?.step.length ?? 0).toBe(records);
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  it("takes stages from the order of ranks where a cut file names none, and says so", () => {
    const { stageOperations, defects } = read(JSON.stringify(EVENTS).slice(0, -1));
    expect([...stageOperations![0]!.stage]).toEqual([0, 0, 1, 1, 0, 1]);
    expect(defects.map(({ what }) => what)).toEqual([
      "is cut: its last operations are missing",
      "does not name all stages: taken from the order of ranks",
    ]);
  });

  it("keeps what is good around an event that is none of its operations", () => {
    const strange = { ...EVENTS[0]!, name: "aten::mm" };
    const { records, defects } = read(JSON.stringify([EVENTS[0], strange, ...NAMES]));
    expect(records).toBe(1);
    expect(defects[0]!.what).toContain("aten::mm");
  });

  it("is recognised by its operations, and no other trace is", () => {
    expect(sniffs(stageTimeline, TEXT)).toBe(true);
    const bytes = Buffer.from(TEXT);
    const head = { name: "timeline.json", bytes, text: TEXT };
    expect(recognise(head)).toBe(stageTimeline);
    const kineto = {
      ...EVENTS[0],
      cat: "cpu_op",
      name: "aten::mm",
      args: { "External id": 1, seq_id: 3, step: 1 },
    };
    expect(sniffs(stageTimeline, JSON.stringify([kineto]))).toBe(false);
    expect(sniffs(stageTimeline, JSON.stringify([...EVENTS, kineto]))).toBe(false);
    expect(sniffs(stageTimeline, JSON.stringify({ traceEvents: EVENTS }))).toBe(false);
    expect(sniffs(stageTimeline, JSON.stringify(NAMES))).toBe(false);
    expect(sniffs(stageTimeline, '[{"seq_id": 1}')).toBe(false);
  });
});
