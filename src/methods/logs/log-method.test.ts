import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import type { Accusation, NewFinding } from "../../model/finding.ts";
import type { Env, Job, RankInfo } from "../../model/job.ts";
import type { LogFailure } from "../../model/log.ts";
import { logCause, withLogReport } from "./log-method.ts";
import { digestOf, type TestLine } from "../../../test/support/methods/log-digest.ts";

const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };
const T0 = Date.UTC(2026, 10, 15);
const RANKS = 8;
const PER_NODE = 4;

function failure(given: Partial<LogFailure>): LogFailure {
  const { rank = null } = given;
  return {
    rank,
    file: rank === null ? "dmesg.node1.log" : `rank${rank}.log`,
    line: 1,
    timeMs: T0 + 600_000,
    role: "echo",
    cause: "unknown",
    signature: "torch.watchdog.timeout",
    text: "Watchdog caught collective operation timeout",
    at: null,
    ...given,
  };
}

const timeouts = (...ranks: number[]): LogFailure[] => ranks.map((rank) => failure({ rank }));
const blocked = failure({
  role: "stall",
  cause: "storage",
  signature: "hung-task",
  text: "INFO: task python:4242 blocked for more than 120 seconds.",
});
const noAnswer = "nfs: server filer03 not responding, still trying";
const sickNic = "mlx5_core 0000:d2:00.0 ens6np0: Link down";

interface Given {
  readonly kernel: string;
  readonly failures: readonly LogFailure[];
  readonly pids?: ReadonlyMap<number, number>;
}

function jobOf({ kernel, failures, pids }: Given): Job {
  const infos = Array.from({ length: RANKS }, (_, rank): [number, RankInfo] => [
    rank,
    {
      rank,
      machine: `node${Math.floor(rank / PER_NODE)}`,
      gpu: rank % PER_NODE,
      pid: pids?.get(rank) ?? null,
      nic: null,
      leaf: null,
    },
  ]);
  const lines: TestLine[] = [
    { file: "dmesg.node0.log", text: "perf: interrupt took too long", timeMs: T0 },
    { file: "dmesg.node1.log", text: kernel, timeMs: T0 + 1000 },
  ];
  return withLogReport({
    ...buildJob([], null),
    worldSize: RANKS,
    ranks: new Map(infos),
    failures,
    logDigest: digestOf(lines),
  });
}

function accused(given: Given): Accusation[] {
  const found = [...(logCause.run(jobOf(given), ENV) as Iterable<NewFinding>)];
  return found.flatMap(({ accuses }) => accuses);
}

describe("what the logs say of storage and networks", () => {
  it("is a hang where ranks timed out and no process ended, of the rank that does not wait", () => {
    expect(accused({ kernel: noAnswer, failures: timeouts(0, 1, 2, 3, 4, 6, 7) })).toMatchObject([
      { kind: "hang", type: "storage", ranks: [5], cause: "storage", name: "node1" },
    ]);
  });

  it("is a crash where a process ended of an error of its own", () => {
    const died = failure({ rank: 6, role: "own", cause: "storage", signature: "storage" });
    expect(accused({ kernel: noAnswer, failures: [died] })).toMatchObject([{ kind: "crash" }]);
  });

  it("names the rank whose process the kernel calls blocked, where ids are known", () => {
    const pids = new Map([
      [2, 4242],
      [6, 4242],
      [7, 4243],
    ]);
    expect(accused({ kernel: noAnswer, failures: [blocked], pids })).toMatchObject([
      { kind: "hang", ranks: [6] },
    ]);
  });

  it("accuses nobody of waiting for storage who waits in communication", () => {
    expect(accused({ kernel: noAnswer, failures: timeouts(0, 1, 2, 4, 5, 6, 7) })).toEqual([]);
  });

  it("is the machine's NIC where all are inside communication", () => {
    const failures = timeouts(0, 1, 2, 3, 4, 5, 6, 7);
    expect(accused({ kernel: sickNic, failures })).toMatchObject([
      { kind: "hang", type: "nic", ranks: [4, 5, 6, 7], cause: "network-hang" },
    ]);
  });

  it("is a crash where connections closed before anything timed out", () => {
    const closed = failure({
      rank: 1,
      cause: "process-gone",
      signature: "nccl.socket.closed-by-peer",
      timeMs: T0 + 2000,
    });
    const failures = [closed, ...timeouts(2, 3)];
    expect(accused({ kernel: sickNic, failures })).toMatchObject([{ kind: "crash" }]);
  });
});

describe("lines that nobody knows", () => {
  const told = (text: string, timeMs: number): string[] => {
    const line = { file: "rank0.log", rank: 0, text, timeMs, level: "error" } as const;
    const job = withLogReport({ ...buildJob([], null), logDigest: digestOf([line]) });
    return [...(logCause.run(job, ENV) as Iterable<NewFinding>)].map(({ says }) => says);
  };

  it("are named with their time, if they have one", () => {
    const text = "FooBar engine lost its marbles: error 7";
    expect(told(text, T0)).toEqual([
      expect.stringContaining(` at ${new Date(T0).toISOString()}: `),
    ]);
    const inNoYear = told(text, Date.UTC(2000, 10, 16));
    expect(inNoYear).toEqual([expect.stringContaining(`on rank 0: ${text}`)]);
  });
});
