import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Env, Job } from "../../model/job.ts";
import type { LogFailure } from "../../model/log.ts";
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

function findings(failures: readonly LogFailure[]): NewFinding[] {
  const job: Job = { ...buildJob([], null), worldSize: 8, failures };
  return [...(firstError.run(job, ENV) as Iterable<NewFinding>)];
}

const echo = failure({
  rank: 3,
  file: "rank3.log",
  role: "echo",
  cause: "unknown",
  signature: "nccl-watchdog",
  text: "Watchdog caught collective operation timeout",
});

describe("whose own error came first", () => {
  it("is nobody's where the kernel only tells of a process that waits", () => {
    const found = findings([failure({ role: "stall" }), echo]);
    expect(found.flatMap(({ accuses }) => accuses)).toEqual([]);
  });

  it("is that of the process that ended, whatever waits beside it", () => {
    const died = failure({
      rank: 5,
      file: "rank5.log",
      cause: "gpu-memory",
      signature: "cuda-oom",
      text: "CUDA out of memory",
    });
    const [first] = findings([failure({ role: "stall" }), died, echo]);
    expect(first!.accuses).toMatchObject([{ kind: "crash", ranks: [5], cause: "gpu-memory" }]);
  });
});
