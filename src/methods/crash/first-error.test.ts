import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Env, Job } from "../../model/job.ts";
import type { LogFailure } from "../../model/log.ts";
import { START } from "../../model/series.ts";
import { withLogReport } from "../logs/log-method.ts";
import { digestOf } from "../../../test/support/methods/log-digest.ts";
import { firstError } from "./first-error.ts";

const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };

function failure(given: Partial<LogFailure>): LogFailure {
  return {
    rank: null,
    file: "dmesg.node1.log",
    line: 1,
    timeMs: null,
    role: "own",
    cause: "storage",
    signature: "hung-task",
    text: "INFO: task python:280 blocked for more than 120 seconds.",
    at: null,
    ...given,
  };
}

function findings(failures: readonly LogFailure[], more: Partial<Job> = {}): NewFinding[] {
  const job: Job = { ...buildJob([], null), worldSize: 8, failures, ...more };
  return [...(firstError.run(job, ENV) as Iterable<NewFinding>)];
}

const echo = failure({
  rank: 3,
  file: "rank3.log",
  role: "echo",
  cause: "unknown",
  signature: "torch.watchdog.timeout",
  text: "Watchdog caught collective operation timeout",
});

describe("whose own error came first", () => {
  it("is that of a process whose probe saw it, though the logs that are here say nothing", () => {
    const seen = failure({
      rank: 5,
      file: "rank5.ring",
      cause: "user-program",
      signature: "python-exception",
      text: "KeyError: 'x'",
    });
    const logs = withLogReport({
      ...buildJob([], null),
      logDigest: digestOf([{ file: "rank5.log", text: "step 1 done", timeMs: 0 }]),
    });
    const { logDigest, logReport } = logs;
    const [first] = findings([seen], { logDigest: logDigest!, logReport: logReport! });
    expect(first!.accuses).toMatchObject([{ ranks: [5], cause: "user-program" }]);
    const printed = findings([{ ...seen, file: "rank5.log" }], {
      logDigest: logDigest!,
      logReport: logReport!,
    });
    expect(printed.flatMap(({ accuses }) => accuses)).toEqual([]);
  });

  it("is nobody's where the kernel only tells of a process that waits", () => {
    const found = findings([failure({ role: "stall" }), echo]);
    expect(found.flatMap(({ accuses }) => accuses)).toEqual([]);
  });

  it("is that of the process that ended, whatever waits beside it", () => {
    const died = failure({
      rank: 5,
      file: "rank5.log",
      cause: "gpu-memory",
      signature: "cuda.oom.torch",
      text: "CUDA out of memory",
    });
    const [first] = findings([failure({ role: "stall" }), died, echo]);
    expect(first!.accuses).toMatchObject([{ kind: "crash", ranks: [5], cause: "gpu-memory" }]);
  });

  describe("in a job that goes on", () => {
    const traceback = failure({
      rank: 5,
      file: "rank5.log",
      cause: "user-program",
      signature: "python-exception",
      text: "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x88",
      timeMs: 50_000,
    });
    /** Rank 7 reports an iteration every five seconds, the last at 5 s times their number. */
    const reports = (iterations: number, startAt = -1): Partial<Job> => ({
      series: [
        {
          source: "rank7.log",
          file: "rank7.log",
          rank: 7,
          basis: "reported",
          iteration: Float64Array.from({ length: iterations }, (_, i) => i + 1),
          durationMs: new Float64Array(iterations).fill(5000),
          endMs: Float64Array.from({ length: iterations }, (_, i) => (i + 1) * 5000),
          line: new Int32Array(iterations),
          batch: new Float64Array(iterations).fill(NaN),
          between: Uint8Array.from({ length: iterations }, (_, i) => (i === startAt ? START : 0)),
        },
      ],
    });
    const accused = (more: Partial<Job>): number[] =>
      findings([traceback], more).flatMap(({ accuses }) => accuses.flatMap(({ ranks }) => ranks));

    it("is nobody's: without the rank nobody would report further iterations", () => {
      expect(accused(reports(14))).toEqual([]);
    });

    it("is the rank's where no more than the iteration under way was reported", () => {
      expect(accused(reports(11))).toEqual([5]);
    });

    it("is nobody's where the rank printed the same error long before: a process dies once", () => {
      const at = "reader.py:212 decode";
      const [first, again] = [
        { ...traceback, at, timeMs: 1000 },
        { ...traceback, at, line: 90 },
      ];
      const ranks = (failures: readonly LogFailure[]): number[] =>
        findings(failures).flatMap(({ accuses }) => accuses.flatMap((one) => one.ranks));
      expect(ranks([first, again])).toEqual([]);
      // Printed twice by a process that dies.
      expect(ranks([{ ...first, timeMs: 49_500 }, again])).toEqual([5]);
      const other = { ...again, text: "KeyError: 'x'" };
      expect(ranks([first, other])).toEqual([5]);
    });

    it("is nobody's though a connection was closed once: all went on", () => {
      const closed = failure({
        rank: 2,
        file: "rank2.log",
        role: "echo",
        cause: "process-gone",
        signature: "connection-closed",
        text: "wandb: Network error (ConnectionResetError), entering retry loop.",
        timeMs: 20_000,
      });
      const found = findings([closed], reports(14));
      expect(found.flatMap(({ accuses }) => accuses)).toEqual([]);
    });

    it("is the rank's where the job was started anew in between", () => {
      expect(accused(reports(14, 11))).toEqual([5]);
    });
  });
});
