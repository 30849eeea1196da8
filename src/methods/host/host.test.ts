import { describe, expect, it } from "vitest";
import { seeded } from "../../base/random.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Env, Job } from "../../model/job.ts";
import { ITERATION, COLLECTION, PYTHON_CALL, type ProbeProcess } from "../../model/probe.ts";
import type { Method } from "../../model/method.ts";
import type { TrackedSeries } from "../../model/series.ts";
import { openCalls } from "./open-calls.ts";
import { pythonTime } from "./python-time.ts";

const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };
const MS = 1e6;
const LOADER = "torch.utils.data@DataLoader.__next__";
const SYNC = "torch.cuda@synchronize";
const REDUCE = "torch.distributed@all_reduce";
const NAMES = [LOADER, SYNC, REDUCE];
const RANKS = 6;
const USUAL_MS = 50;

interface Call {
  readonly kind: number;
  readonly name: string;
  readonly start: number;
  /** NaN while it goes on. */
  readonly end: number;
  readonly detail?: number;
}

function probeOf(rank: number, list: readonly Call[], takenMs: number): ProbeProcess {
  const sorted = list.toSorted((a, b) => a.start - b.start);
  const column = (of: (call: Call) => number): Float64Array => Float64Array.from(sorted, of);
  return {
    file: `${rank}.ring`,
    rank,
    worldSize: RANKS,
    host: `h${rank}`,
    pid: rank,
    gpu: null,
    writer: "python",
    job: "job",
    library: "",
    epochNs: 0n,
    startedNs: 0,
    copiedNs: takenMs * MS,
    heartbeatNs: takenMs * MS,
    state: "S",
    waitsIn: "",
    ended: null,
    words: "",
    communicators: [],
    connections: {
      count: 0,
      communicator: new Int32Array(),
      channel: new Uint8Array(),
      isSend: new Uint8Array(),
      peer: new Int32Array(),
      begun: new Float64Array(),
      finished: new Float64Array(),
      state: new Uint8Array(),
      changedNs: new Float64Array(),
    },
    calls: {
      count: sorted.length,
      kind: Uint8Array.from(sorted, ({ kind }) => kind),
      name: Int32Array.from(sorted, ({ name }) => NAMES.indexOf(name)),
      startNs: column(({ start }) => start * MS),
      endNs: column(({ end }) => end * MS),
      thread: column(() => 1),
      detail: column(({ detail }) => detail ?? 0),
      names: NAMES,
    },
    dropped: 0,
  };
}

type Doing = (rank: number, iteration: number) => readonly (readonly [string, number])[];

/** Sixty iterations, slow from the thirtieth on where `extraMs` is given. */
function jobOf(doing: Doing, extraMs: number): Job {
  const probes = Array.from({ length: RANKS }, (_, rank) => {
    const list: Call[] = [];
    let at = 0;
    for (let iteration = 1; iteration <= 60; iteration++) {
      const lasts = USUAL_MS + (iteration >= 30 ? extraMs : 0);
      list.push({ kind: ITERATION, name: "", start: at, end: at + lasts, detail: iteration });
      let inside = at + 1;
      for (const [name, ms] of doing(rank, iteration)) {
        const kind = name === "gc" ? COLLECTION : PYTHON_CALL;
        list.push({ kind, name, start: inside, end: inside + ms });
        inside += ms + 0.1;
      }
      at += lasts;
    }
    return probeOf(rank, list, at + 10);
  });
  const episode = {
    from: 30,
    to: 60,
    ratio: (USUAL_MS + extraMs) / USUAL_MS,
    type: "degradation" as const,
    iterations: 31,
    wastedMs: 31 * extraMs,
    period: null,
    isOpen: true,
  };
  const tracked = {
    medianMs: USUAL_MS,
    episodes: extraMs > 0 ? [episode] : [],
    changePoints: [],
    pauses: [],
  } as unknown as TrackedSeries;
  return { probes, iterations: [tracked] } as unknown as Job;
}

function accused(job: Job, method: Method = pythonTime) {
  const findings = [...(method.run(job, ENV) as Iterable<NewFinding>)];
  return findings.flatMap(({ accuses }) =>
    accuses.map(({ ranks, cause, kind, type }) => ({ ranks, cause, kind, type })),
  );
}

describe("what Python did instead of training", () => {
  const random = seeded(7);
  /** What healthy ranks do: load a little, collect now and then, wait for the rest in a collective. */
  const healthy: Doing = (_, iteration) => [
    [LOADER, 1 + random()],
    ...(iteration % 7 === 0 ? ([["gc", 3 + random()]] as const) : []),
    [REDUCE, 20 + random()],
  ];

  it("accuses nobody of a healthy job", () => {
    expect(accused(jobOf(healthy, 0))).toEqual([]);
  });

  it("names the rank whose collections are the slow-down, though all ranks are slow", () => {
    const doing: Doing = (rank, iteration) => {
      const isSlow = iteration >= 30;
      if (rank === 4 && isSlow)
        return [
          [LOADER, 1],
          ["gc", 20],
          ["gc", 21],
          [REDUCE, 20],
        ];
      return [
        [LOADER, 1],
        [REDUCE, isSlow ? 62 : 20],
      ];
    };
    expect(accused(jobOf(doing, 42))).toEqual([
      { ranks: [4], cause: "garbage-collection", kind: "fail-slow", type: "rank" },
    ]);
  });

  it("counts a collection inside the loader as a collection", () => {
    const job = jobOf(
      (rank, iteration) => (rank === 1 && iteration >= 30 ? [[LOADER, 40]] : []),
      40,
    );
    const { calls } = job.probes![1]!;
    // The same stretches as collections, too.
    const list: Call[] = [];
    for (let i = 0; i < calls.count; i++) {
      const one = {
        start: calls.startNs[i]! / MS,
        end: calls.endNs[i]! / MS,
        detail: calls.detail[i]!,
      };
      list.push({ kind: calls.kind[i]!, name: NAMES[calls.name[i]!] ?? "", ...one });
      if (calls.name[i] === 0) list.push({ kind: COLLECTION, name: "", ...one });
    }
    const probes = job.probes!.map((probe) => (probe.rank === 1 ? probeOf(1, list, 9e6) : probe));
    expect(accused({ ...job, probes }).map(({ cause }) => cause)).toEqual(["garbage-collection"]);
  });

  it("names the rank whose loader is the slow-down", () => {
    const doing: Doing = (rank, iteration) =>
      rank === 2 && iteration >= 30
        ? [[LOADER, 31]]
        : [
            [LOADER, 1],
            [REDUCE, 20],
          ];
    expect(accused(jobOf(doing, 30))).toEqual([
      { ranks: [2], cause: "dataloader", kind: "fail-slow", type: "rank" },
    ]);
  });

  it("names the data where every rank waits for its loader", () => {
    const doing: Doing = (_, iteration) => [[LOADER, iteration >= 30 ? 31 : 1]];
    expect(accused(jobOf(doing, 30))).toEqual([
      { ranks: [], cause: "dataloader", kind: "fail-slow", type: "data" },
    ]);
  });

  it("blames synchronisation that began with the slow-down, not waiting that became longer", () => {
    const began: Doing = (_, iteration) => (iteration >= 30 ? [[SYNC, 25]] : []);
    expect(accused(jobOf(began, 30)).map(({ cause }) => cause)).toEqual(["synchronization"]);
    const longer: Doing = (_, iteration) => [[SYNC, iteration >= 30 ? 35 : 5]];
    expect(accused(jobOf(longer, 30))).toEqual([]);
  });

  it("accuses nobody of a slow-down that is not Python's", () => {
    const doing: Doing = (_, iteration) => [
      [LOADER, 1],
      [REDUCE, iteration >= 30 ? 50 : 20],
    ];
    expect(accused(jobOf(doing, 30))).toEqual([]);
  });

  it("names a rank that was far outside its peers from the start", () => {
    const doing: Doing = (rank) =>
      rank === 3
        ? [["gc", 20]]
        : [
            ["gc", 1],
            [REDUCE, 19],
          ];
    expect(accused(jobOf(doing, 0))).toEqual([
      { ranks: [3], cause: "garbage-collection", kind: "fail-slow", type: "rank" },
    ]);
  });
});

describe("what all ranks do from the start", () => {
  const all = Array.from({ length: RANKS }, (_, rank) => rank);

  it("is no health where iterations go to collections or to waiting for data", () => {
    expect(accused(jobOf(() => [["gc", 40]], 0))).toEqual([
      { ranks: all, cause: "garbage-collection", kind: "regression", type: "code" },
    ]);
    // A collection every fifth iteration costs as much as all of them together do.
    const now: Doing = (_, iteration) => (iteration % 5 === 0 ? [["gc", 48]] : [["gc", 10]]);
    expect(accused(jobOf(now, 0)).map(({ cause }) => cause)).toEqual(["garbage-collection"]);
    expect(accused(jobOf((rank) => [[LOADER, rank === 1 ? 15 : 25]], 0))).toEqual([
      { ranks: [0, 2, 3, 4, 5], cause: "dataloader", kind: "regression", type: "data" },
    ]);
  });

  it("is left alone below such shares, and where it is one long wait", () => {
    const usual: Doing = () => [
      [LOADER, 17],
      ["gc", 13],
    ];
    expect(accused(jobOf(usual, 0))).toEqual([]);
    const early: Doing = (_, iteration) => (iteration < 29 ? [[LOADER, 48]] : []);
    expect(accused(jobOf(early, 0))).toEqual([]);
  });

  it("does not stand beside who pays for a slow-down", () => {
    const doing: Doing = (rank, iteration) => [
      [LOADER, 25],
      ...(rank === 4 && iteration >= 30 ? ([["gc", 41]] as const) : []),
    ];
    expect(accused(jobOf(doing, 42)).map(({ ranks }) => ranks)).toEqual([[4]]);
  });
});

describe("where Python stands in a job that stands still", () => {
  const idleMs = 300_000;
  function standing(last: readonly (string | null)[], takenMs = idleMs): Job {
    const probes = last.map((name, rank) => {
      const list: Call[] = [];
      for (let i = 1; i <= 20; i++)
        list.push({ kind: ITERATION, name: "", start: 50 * (i - 1), end: 50 * i, detail: i });
      list.push({ kind: PYTHON_CALL, name: REDUCE, start: 990, end: 991 });
      if (name !== null) list.push({ kind: PYTHON_CALL, name, start: 1001, end: NaN });
      return probeOf(rank, list, takenMs);
    });
    return { probes, iterations: [] } as unknown as Job;
  }
  const who = (job: Job) => accused(job, openCalls).map(({ ranks, cause }) => [ranks, cause]);

  it("names who is in its loader while others wait in a collective", () => {
    expect(who(standing([REDUCE, LOADER, REDUCE, REDUCE]))).toEqual([[[1], "dataloader"]]);
  });

  it("names who is in no call while others wait in one that blocks", () => {
    expect(who(standing([REDUCE, REDUCE, REDUCE, null]))).toEqual([[[3], "cpu-stall"]]);
  });

  it("accuses nobody where all wait, for each other or for their GPUs", () => {
    expect(who(standing([REDUCE, REDUCE, REDUCE, REDUCE]))).toEqual([]);
    expect(who(standing([SYNC, SYNC, SYNC, SYNC]))).toEqual([]);
    expect(who(standing([null, null, SYNC, null]))).toEqual([]);
    expect(who(standing([REDUCE, SYNC, REDUCE, REDUCE]))).toEqual([]);
  });

  it("accuses nobody of a job that goes on", () => {
    expect(who(standing([REDUCE, LOADER, REDUCE, REDUCE], 1_100))).toEqual([]);
  });

  it("names the data where most are in their loaders", () => {
    expect(who(standing([LOADER, LOADER, LOADER, REDUCE]))).toEqual([[[], "dataloader"]]);
  });
});
