import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Reading } from "../model/reading.ts";
import { CHECKPOINT, EVALUATION, START } from "../model/series.ts";
import { rankLog } from "./rank-log.ts";
import {
  readAtAllSizes,
  readBytes,
  readCutEverywhere,
  sniffs,
} from "../../test/support/ingest/reader-contract.ts";
import { torchtitanJsonl } from "./torchtitan-jsonl.ts";

const EPOCH_MS = Date.UTC(2026, 10, 15);

interface Event {
  readonly ms: number;
  readonly step?: number;
  readonly name: string;
  readonly rank?: number;
  readonly pid?: number;
  readonly event?: string;
  readonly value?: number;
}

/** As TraceJsonlFormatter writes it. */
function record({ ms, step, name, rank = 0, pid = 71, event, value }: Event): string {
  const us = (EPOCH_MS + ms) * 1000;
  return `${JSON.stringify({
    delta_ms: 0.1,
    tid: pid,
    rank,
    global_rank: rank,
    local_rank: rank % 8,
    source: "training",
    host_name: "n1",
    pid,
    ...(step === undefined ? {} : { step, relative_step: step }),
    time: Math.floor(us / 1e6),
    time_ms: Math.floor(us / 1e3),
    time_us: us,
    log_type: name === "metric_value" ? "instant" : "event",
    log_type_name: name,
    event_name: event ?? null,
    ...(value === undefined ? {} : { value }),
    caller: "trainer.py:796:train_step",
    seq_id: 1,
    message: 'says "step": 99 and "rank": 5',
  }).replaceAll(/([:,])(?=")|":/g, (m) => `${m} `)}\n`;
}

const steps = (times: readonly number[], rank = 0, first = 1): string =>
  times
    .flatMap((ms, i) => [
      record({ ms, step: first + i, name: "step_start", rank }),
      record({ ms: ms + 1, step: first + i, name: "fwd_bwd_start", rank }),
      record({ ms: ms + 3, step: first + i, name: "fwd_bwd_end", rank, value: 2 }),
    ])
    .join("");

const read = (text: string): Reading => readBytes(torchtitanJsonl, "training.jsonl", text);

describe("torchtitan's structured log", () => {
  it("takes a step for the time from its first event to the first of the next", () => {
    const reading = read(
      record({ ms: -5, name: "structured_logger_started" }) + steps([0, 1000, 2500], 3, 11),
    );
    // The first record names rank 0, so the file is of two.
    expect(reading.series).toMatchObject([
      { source: "training.jsonl, rank 3", basis: "timestamps" },
    ]);
    const one = read(steps([0, 1000, 2500.5], 3, 11));
    expect(one).toMatchObject({ rank: 3, records: 9, defects: [] });
    const [series] = one.series!;
    expect(series).toMatchObject({ source: "training.jsonl", rank: 3, basis: "timestamps" });
    expect([...series!.iteration]).toEqual([11, 12]);
    expect([...series!.durationMs]).toEqual([1000, 1500.5]);
    expect([...series!.endMs]).toEqual([EPOCH_MS + 1000, EPOCH_MS + 2500.5]);
    expect([...series!.line]).toEqual([1, 4]);
  });

  it("marks the step in which a checkpoint or a validation ran, and the start", () => {
    const [series] = read(
      record({ ms: -5, name: "training_start" }) +
        record({ ms: 0, step: 1, name: "step_start" }) +
        record({ ms: 10, step: 1, name: "checkpoint_save_start" }) +
        record({ ms: 100, step: 2, name: "step_start" }) +
        record({ ms: 110, step: 2, name: "validate_start" }) +
        record({ ms: 120, step: 1, name: "checkpoint_save_end", value: 110 }) +
        record({ ms: 200, step: 3, name: "step_start" }) +
        record({ ms: 300, step: 4, name: "step_start" }),
    ).series!;
    expect([...series!.iteration]).toEqual([1, 2, 3]);
    expect([...series!.between]).toEqual([START | CHECKPOINT, EVALUATION, 0]);
  });

  it("begins anew with another process", () => {
    const [series] = read(
      record({ ms: 0, step: 5, name: "step_start" }) +
        record({ ms: 10, step: 6, name: "step_start" }) +
        record({ ms: 900, step: 4, name: "step_start", pid: 72 }) +
        record({ ms: 915, step: 5, name: "step_start", pid: 72 }),
    ).series!;
    expect([...series!.iteration]).toEqual([5, 4]);
    expect([...series!.durationMs]).toEqual([10, 15]);
    expect([...series!.between]).toEqual([0, START]);
  });

  it("prefers the step's time where the trainer logs it", () => {
    const text = [1, 2, 3]
      .map(
        (step) =>
          record({ ms: step * 1000, step, name: "step_start" }) +
          record({
            ms: step * 1000 + 5,
            step,
            name: "metric_value",
            event: "time_metrics/end_to_end(s)",
            value: 0.75,
          }),
      )
      .join("");
    const [series] = read(text).series!;
    expect(series!.basis).toBe("reported");
    expect([...series!.durationMs]).toEqual([750, 750]);
  });

  it("counts lines that are no records and shows one", () => {
    const reading = read(`${steps([0, 10])}oops\n{"time_us": 1, "cut\n${steps([20, 30], 0, 3)}`);
    expect(reading.defects).toEqual([
      { file: "training.jsonl", line: 7, what: "is not a torchtitan record: oops" },
      { file: "training.jsonl", what: "2 lines are not torchtitan records" },
    ]);
    expect([...reading.series![0]!.durationMs]).toEqual([10, 10, 10]);
  });

  it("recognises its format and nothing else", () => {
    expect(sniffs(torchtitanJsonl, steps([0, 10]))).toBe(true);
    expect(sniffs(rankLog, steps([0, 10]))).toBe(false);
    for (const other of [
      '{"step": 1, "loss": 2}\n',
      "",
      "step: 1  loss: 2\n",
      '[{"log_type_name": 1}]',
    ]) {
      expect(sniffs(torchtitanJsonl, other)).toBe(false);
    }
  });

  it("reads the same at every chunk size, survives a cut at every byte and random bytes", () => {
    const text = steps([0, 10, 25]);
    const [first, ...others] = readAtAllSizes(torchtitanJsonl, "a.jsonl", text);
    for (const other of others) expect(other).toEqual(first);
    for (const reading of readCutEverywhere(torchtitanJsonl, "a.jsonl", text)) {
      expect(reading.series!.length).toBeLessThanOrEqual(1);
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(readBytes(torchtitanJsonl, "a", bytes).format).toBe("torchtitan-jsonl");
      }),
    );
  });
});
