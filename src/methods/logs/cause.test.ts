import { describe, expect, it } from "vitest";
import { FaultMatchers } from "../../library/matcher.ts";
import { shippedMatchers } from "../../library/shipped.ts";
import type { FaultRecord } from "../../model/fault-record.ts";
import { analyseLogs } from "./analyse-logs.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

const nobody = { jobs: 0, has: () => false, hasRecord: () => false };
const T0 = Date.UTC(2026, 10, 15);

function record(id: string, given: Partial<FaultRecord>): FaultRecord {
  return {
    id,
    title: id,
    layer: "torch",
    match: { all: [id] },
    meaning: "it",
    component: "it",
    category: "user.program",
    role: "root",
    severity: "error",
    owner: "user",
    action: "do it",
    falseFriends: [],
    certainty: 0.5,
    source: "us",
    example: id,
    ...given,
  };
}

const lines = (...texts: string[]): TestLine[] =>
  texts.map((text, i) => ({ file: "job.log", text, timeMs: T0 + 1000 * i }));

function iterations(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ` iteration ${from + i}/ 500 | loss 2.1`);
}

describe("the cause", () => {
  const library = new FaultMatchers([
    record("gpu failed", { category: "hardware.accelerator", certainty: 0.9 }),
    record("peer is gone error", { role: "cascade", category: "hardware.network", certainty: 0.9 }),
    record("odd exception", { certainty: 0.4 }),
    record("harmless error", { role: "benign", category: null, certainty: 0.5 }),
  ]);

  it("is the root, however loud the cascade", () => {
    const cascade = Array.from({ length: 20 }, () => "peer is gone error");
    const report = analyseLogs(digestOf(lines(...cascade, "gpu failed")), library, nobody);
    expect(report.cause).toMatchObject({ signature: "gpu failed", role: "root" });
    expect(report.alternatives.map(({ signature }) => signature)).toEqual(["peer is gone error"]);
  });

  it("is a cascade only where nothing else is known, and with little confidence", () => {
    const report = analyseLogs(digestOf(lines("peer is gone error")), library, nobody);
    expect(report.cause?.role).toBe("cascade");
    expect(report.cause!.confidence).toBeLessThan(0.4);
  });

  it("is nothing that training outlived, unless it came again", () => {
    const went = (text: string, iteration: number): TestLine => ({
      file: "job.log",
      text,
      iteration,
      timeMs: T0 + 10_000 * iteration,
    });
    const reports = iterations(1, 20).map((text, i) => went(text, i + 1));
    const odd = { file: "job.log", text: "odd exception", timeMs: T0 + 15_000 };
    const early = [reports[0]!, odd, ...reports.slice(1)];
    expect(analyseLogs(digestOf(early), library, nobody).cause).toBeNull();
    const again = [...early, { ...odd, timeMs: T0 + 300_000 }];
    expect(analyseLogs(digestOf(again), library, nobody).cause?.signature).toBe("odd exception");
  });

  it("is nothing that healthy jobs say, too, nor what is benign", () => {
    const pool = { jobs: 3, has: () => true, hasRecord: () => true };
    const calm = lines("peer is gone error", "harmless error");
    const report = analyseLogs(digestOf(calm), library, pool);
    expect(report).toMatchObject({ cause: null, indicating: [] });
    // A root error is never normal: a job that failed may have been taken for healthy.
    const other = analyseLogs(digestOf(lines("gpu failed")), library, pool);
    expect(other.cause?.signature).toBe("gpu failed");
  });
});

describe("a job that says that it is done", () => {
  const library = new FaultMatchers([record("gpu failed", { category: "hardware.accelerator" })]);
  it("has no cause in what came before, and one in what came after", () => {
    const done = "[after training is done] datetime: now";
    const before = digestOf(lines("gpu failed", done, "bye"));
    expect(analyseLogs(before, library, nobody)).toMatchObject({ cause: null, indicating: [] });
    const after = digestOf(lines(done, "saving the last checkpoint", "gpu failed"));
    expect(analyseLogs(after, library, nobody).cause?.signature).toBe("gpu failed");
    const denied = digestOf(lines("gpu failed", "error: training is done only in part, aborted"));
    expect(analyseLogs(denied, library, nobody).cause?.signature).toBe("gpu failed");
  });
});

describe("what several lines say together", () => {
  const matchers = shippedMatchers();
  const timeout = (rank: number): string =>
    `[Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.`;

  it("a timeout before training is slow preparation", () => {
    const digest = digestOf(lines("loading dataset shards error count 0", timeout(1), timeout(2)));
    const { cause } = analyseLogs(digest, matchers, nobody);
    expect(cause).toMatchObject({
      category: "user.config",
      signature: "context.timeout-before-training",
    });
  });

  it("ranks that enqueued less are out of step", () => {
    const last = (rank: number, seq: number): string =>
      `[Rank ${rank}] Timeout at NCCL work: ${seq}, last enqueued NCCL work: ${seq}, last completed NCCL work: 99.`;
    const said = [101, 101, 100, 101].map((seq, rank) => ({ ...lines(last(rank, seq))[0]!, rank }));
    const { cause } = analyseLogs(digestOf([...lines(timeout(0)), ...said]), matchers, nobody);
    expect(cause).toMatchObject({ signature: "context.ranks-out-of-step", ranks: [2] });
  });
});
