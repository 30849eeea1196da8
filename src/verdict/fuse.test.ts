import { describe, expect, it } from "vitest";
import { buildJob } from "../ingest/build-job.ts";
import { parseJobFile } from "../ingest/job-file.ts";
import { judgedLink, judgedRank } from "../../test/support/judged.ts";
import { effectOf } from "../model/answer.ts";
import type { EvenIterations, Fact, SlowDown } from "../model/facts.ts";
import type { Accusation, Finding } from "../model/finding.ts";
import type { Job } from "../model/job.ts";
import type { MethodId } from "../model/method.ts";
import type { Verdict } from "../model/verdict.ts";
import { fuse } from "./fuse.ts";

/** Sixteen ranks on node0 and node1. */
function job(more: object = {}): Job {
  const ranks = Array.from({ length: 16 }, (_, rank) => ({
    rank,
    machine: `node${Math.floor(rank / 8)}`,
  }));
  const file = parseJobFile({ worldSize: 16, ranks, ...more }, "job.json");
  return { ...buildJob([], file), watched: new Set(ranks.map(({ rank }) => rank)) };
}

const accuse = (given: Partial<Accusation>): Accusation => ({
  kind: "fail-slow",
  type: "gpu",
  ranks: [3],
  link: null,
  cause: "gpu-slow",
  weight: 0.8,
  why: "it is slow",
  ...given,
});

let id = 0;
function finding(
  method: MethodId,
  accuses: readonly Accusation[],
  more: Partial<Finding> = {},
): Finding {
  return {
    id: `f${++id}`,
    method,
    says: `${method} says so`,
    weight: accuses[0]?.weight ?? 0.5,
    at: [],
    data: { fact: "remark" },
    accuses,
    clears: [],
    ...more,
  };
}

const SLOWER: SlowDown = {
  fact: "slow-down",
  slowDown: true,
  iteration: 40,
  until: null,
  from: null,
  to: null,
  detectedAt: 44,
  beforeMs: 100,
  afterMs: 150,
  ratio: 1.5,
  wastedHours: null,
  series: "log",
};
const EVEN: EvenIterations = {
  fact: "even-iterations",
  evenIterations: 300,
  medianMs: 100,
  variation: 0.01,
  rise: 1,
};
const slower = () => finding("iterations/slow-down", [], { data: SLOWER, weight: 0.95 });
const ask = (findings: readonly Finding[], more: object = {}): Verdict =>
  fuse(job(more), findings, []);
/** The judge of slowness: rank 3 and its GPU, unless more is said. */
const judge = (data: Fact, accuses = [accuse({ type: "rank" })], more = {}): Finding =>
  finding("slow/judge", accuses, { data, weight: accuses[0]?.weight ?? 0.9, ...more });
const STUCK = { kind: "hang", type: "rank", cause: "cpu-stall" } as const;

describe("one verdict from all findings", () => {
  it("is surer where files of different kinds agree, not where those of one kind do", () => {
    const stuck = (weight: number): Finding =>
      finding("hang/wait-graph", [accuse({ ...STUCK, weight })]);
    const stack = finding("hang/stacks", [accuse({ ...STUCK, weight: 0.6 })]);
    const one = ask([stuck(0.7)]);
    expect(ask([stuck(0.7), stuck(0.6)]).confidence).toBe(one.confidence);
    expect(ask([stuck(0.7), stack]).confidence).toBeGreaterThan(one.confidence);
  });

  it("asks first whether a machine answers whose processes are all gone, and counts them", () => {
    const gone = Array.from({ length: 8 }, (_, i) => {
      const why = `the process of rank ${8 + i} is gone`;
      const who = { type: "rank", ranks: [8 + i], cause: "process-gone", why } as const;
      return finding("hang/process", [accuse({ kind: "crash", weight: 0.9, ...who })]);
    });
    const { actions, suspects, answer } = ask(gone);
    expect(actions[0]).toMatchObject({ do: "check-machine", command: "ping -c 3 node1" });
    expect(suspects[0]!.why).toContain("; for one of them, the process of rank 8 is gone");
    expect(answer!.what).toBe("is gone: its 8 processes died without an error message");
  });

  it("never loses confidence by weak support", () => {
    const strong = finding("hang/wait-graph", [accuse({ ...STUCK, weight: 0.8 })]);
    const weak = finding("hang/stacks", [accuse({ ...STUCK, weight: 0.15 })]);
    expect(ask([strong, weak]).confidence).toBeGreaterThanOrEqual(ask([strong]).confidence);
  });

  it("shows who else is accused, with the chance that they did it, and loses confidence by it", () => {
    const ours = finding("hang/wait-graph", [accuse({ ...STUCK, weight: 0.85 })]);
    const theirs = finding("machines/peers", [
      accuse({
        kind: "faulty-machine",
        type: "machine",
        name: "node1",
        ranks: [8, 9, 10, 11, 12, 13, 14, 15],
        cause: "network-hang",
        weight: 0.7,
      }),
    ]);
    const both = ask([ours, theirs]);
    expect(both.suspects[0]).toMatchObject({ ranks: [3], cause: "cpu-stall" });
    expect(both.confidence).toBeLessThan(ask([ours]).confidence);
    const [conflict] = both.reasoning!.conflicts;
    expect(conflict).toMatchObject({ who: "node1", machine: "node1", findings: [theirs.id] });
    expect(conflict!.probability).toBeGreaterThan(0.01);
    expect(conflict!.probability).toBeLessThan(both.confidence);
    expect(both.reasoning!.wouldChange[0]).toBe(
      `If it is not so that ${ours.says}: node1 is to blame (network-hang).`,
    );
  });

  it("names what decided, the strongest first", () => {
    const strong = finding("hang/wait-graph", [accuse({ ...STUCK, weight: 0.9 })]);
    const weaker = finding("hang/stacks", [accuse({ ...STUCK, weight: 0.5 })]);
    const decided = ask([weaker, strong]).reasoning!.decidedBy;
    expect(decided.map(({ finding: which }) => which)).toEqual([strong.id, weaker.id]);
    expect(decided[0]!.times).toBeGreaterThan(decided[1]!.times);
  });

  it("does not blame an odd machine for a job that runs as evenly as before, but shows it", () => {
    const odd = finding("machines/peers", [
      accuse({
        kind: "faulty-machine",
        type: "machine",
        name: "node1",
        ranks: [8, 9],
        cause: "cpu-stall",
      }),
    ]);
    const even = finding("iterations/slow-down", [], { data: EVEN });
    expect(ask([odd]).suspects).toHaveLength(1);
    const verdict = ask([odd, even]);
    expect(verdict.suspects).toEqual([]);
    expect(verdict.reasoning!.conflicts).toMatchObject([{ who: "node1", findings: [odd.id] }]);
    expect(verdict.reasoning!.conflicts[0]!.why).toContain("runs as evenly as before");
  });

  it("leans to the machine that had incidents before", () => {
    const findings = (weight: number) => [
      finding("hang/wait-graph", [
        accuse({ ...STUCK, ranks: [3], weight: 0.6 }),
        accuse({ ...STUCK, ranks: [9], weight }),
      ]),
    ];
    expect(ask(findings(0.55)).suspects[0]!.ranks).toEqual([3]);
    const again = ask(findings(0.55), { incidents: { node1: 2 } });
    expect(again.suspects[0]!.ranks).toEqual([9]);
    expect(again.reasoning!.prior!.says).toContain("node1 had 2 incidents before");
    // It leans; it does not push.
    expect(ask(findings(0.1), { incidents: { node1: 3 } }).suspects[0]!.ranks).toEqual([3]);
  });

  it("takes GPUs for likelier than storage where the evidence is the same", () => {
    const verdict = ask([
      finding("hang/wait-graph", [
        accuse({ kind: "hang", type: "storage", ranks: [0], cause: "storage", weight: 0.6 }),
        accuse({ kind: "hang", type: "rank", ranks: [9], cause: "gpu-hang", weight: 0.6 }),
      ]),
    ]);
    expect(verdict.suspects[0]).toMatchObject({ ranks: [9] });
    expect(verdict.reasoning!.prior!.says).toContain("52 % of such faults are of a gpu");
  });

  it("does not count a hang as a rival of the crash that made it", () => {
    const died = finding("crash/first-error", [
      accuse({ kind: "crash", type: "rank", ranks: [3], cause: "gpu-memory", weight: 0.9 }),
    ]);
    const stuck = finding("hang/stacks", [
      accuse({ kind: "hang", type: "rank", ranks: [9], cause: "cpu-stall", weight: 0.6 }),
    ]);
    expect(ask([died, stuck]).reasoning!.conflicts).toEqual([]);
    expect(ask([died, stuck]).confidence).toBe(ask([died]).confidence);
  });

  describe("joins what monitoring says with what operators say", () => {
    const nic = (machine: string, ranks: number[]) =>
      finding("machines/peers", [
        accuse({
          kind: "faulty-machine",
          type: "machine",
          name: machine,
          ranks,
          cause: "network-slow",
        }),
      ]);

    it("of a link that ends on the machine", () => {
      const link = accuse({
        type: "link",
        ranks: [3, 11],
        link: ["rank:3", "rank:11"],
        cause: "network-slow",
        weight: 0.6,
      });
      const verdict = ask([
        slower(),
        judge(judgedLink(0.6), [link]),
        nic("node0", [0, 1, 2, 3, 4, 5, 6, 7]),
      ]);
      expect(verdict.suspects).toMatchObject([
        { type: "link", ranks: [3, 11], machine: null, machines: ["node0", "node1"] },
      ]);
      expect(verdict.reasoning!.conflicts).toEqual([]);
      expect(verdict.reasoning!.decidedBy).toHaveLength(2);
    });

    it("of several ranks between the same two machines: the network between these", () => {
      const between = (ranks: [number, number]): Finding =>
        judge(judgedLink(0.6), [
          accuse({
            type: "link",
            ranks,
            link: [`rank:${ranks[0]}`, `rank:${ranks[1]}`],
            cause: "network-slow",
          }),
        ]);
      const verdict = ask([slower(), between([3, 11]), between([2, 10])]);
      expect(verdict.suspects).toMatchObject([
        { type: "link", ranks: [2, 3, 10, 11], link: ["node0", "node1"] },
      ]);
      expect(verdict.answer!.who).toBe("the network between node0 and node1");
    });

    it("of a ring that runs through the machine: its part of the ring", () => {
      const ring = accuse({
        type: "nic",
        ranks: [1, 5, 9, 13],
        cause: "network-slow",
        weight: 0.5,
      });
      const verdict = ask([slower(), judge(judgedLink(0.6), [ring]), nic("node1", [8, 9, 10, 11])]);
      expect(verdict.suspects).toMatchObject([{ type: "nic", ranks: [9], machine: "node1" }]);
      expect(verdict.kind).toBe("fail-slow");
    });
  });

  it("of a group that is stuck as a whole, and one odd GPU in it: that GPU", () => {
    const stuck = finding("hang/wait-graph", [
      accuse({
        kind: "hang",
        type: "link",
        ranks: [0, 1, 2, 3],
        cause: "network-hang",
        weight: 0.5,
      }),
    ]);
    const odd = finding("machines/peers", [
      accuse({ kind: "faulty-machine", ranks: [2], cause: "gpu-hang", weight: 0.7 }),
    ]);
    expect(ask([stuck, odd])).toMatchObject({
      kind: "hang",
      suspects: [{ type: "gpu", ranks: [2], cause: "gpu-hang" }],
    });
  });

  it("lets a rank that waited while the job was slow be the one that stopped it", () => {
    const slow = finding("slow/judge", [accuse({ ranks: [9], weight: 0.8 })], {
      clears: [3],
    });
    const stopped = finding("hang/process", [
      accuse({ kind: "hang", type: "rank", cause: "process-stopped", weight: 0.9 }),
    ]);
    expect(ask([slow, stopped]).suspects[0]).toMatchObject({ ranks: [3] });
  });

  it("takes loaders that are slow on all ranks of a machine for its CPU", () => {
    const loaders = Array.from({ length: 8 }, (_, rank) =>
      finding("slow/judge", [
        accuse({ type: "rank", ranks: [rank], cause: "dataloader", weight: 0.8 }),
      ]),
    );
    expect(ask([slower(), ...loaders]).suspects).toMatchObject([
      { type: "machine", machine: "node0", cause: "cpu-stall" },
    ]);
    expect(ask([slower(), loaders[0]!]).suspects).toMatchObject([{ cause: "dataloader" }]);
  });

  it("names a process that the kernel says is stopped, although connections show its rank waiting", () => {
    const gpu = accuse({ kind: "hang", ranks: [7], cause: "gpu-hang", weight: 0.53 });
    const stuck = finding("hang/connections", [gpu], { clears: [0, 1, 2, 3, 4, 5, 6] });
    const stop = accuse({
      kind: "hang",
      type: "rank",
      ranks: [5],
      cause: "process-stopped",
      weight: 0.95,
    });
    const state = (letter: string): Finding =>
      finding("hang/process", [stop], {
        data: { fact: "process-state", state: letter, waitsIn: "do_signal_stop", pid: 1348 },
      });
    const stopped = fuse(job(), [stuck, state("T")], []);
    expect(stopped.suspects[0]).toMatchObject({ ranks: [5], cause: "process-stopped" });
    // One that runs, or sleeps in the kernel, may well wait.
    expect(fuse(job(), [stuck, state("D")], []).suspects[0]).toMatchObject({ ranks: [7] });
  });

  it("shows whom it clears although somebody accuses them loudly, and that they are next", () => {
    const waits = finding(
      "hang/wait-graph",
      [accuse({ kind: "hang", type: "rank", cause: "cpu-stall", weight: 0.9 })],
      { clears: [9] },
    );
    const died = finding("crash/first-error", [
      accuse({ kind: "crash", type: "rank", ranks: [9], cause: "gpu-memory", weight: 0.92 }),
    ]);
    const verdict = ask([waits, died]);
    expect(verdict.suspects[0]).toMatchObject({ ranks: [3] });
    expect(verdict.reasoning!.conflicts).toMatchObject([
      { who: "rank 9", findings: [died.id], why: `it only waits: ${waits.says}` },
    ]);
    expect(verdict.reasoning!.wouldChange[0]).toBe(
      `If it is not so that ${waits.says}: rank 9 is to blame (gpu-memory).`,
    );
  });

  it("asks for nothing that is there", () => {
    const stuck = finding("hang/wait-graph", [
      accuse({ kind: "hang", type: "rank", cause: "cpu-stall", weight: 0.9 }),
    ]);
    const without = ask([stuck]).reasoning!.wouldChange.join();
    expect(without).toContain("A Python stack of rank 3");
    const stacks: Job["stacks"] = new Map([[3, { file: "s", threads: [] } as never]]);
    const withStack = fuse({ ...job(), stacks }, [stuck], []).reasoning!.wouldChange.join();
    expect(withStack).not.toContain("Python stack");
  });

  it("believes in a death though nobody waits: who dies between two operators leaves none pending", () => {
    const died = finding("crash/first-error", [
      accuse({ kind: "crash", type: "rank", ranks: [9], cause: "user-program", weight: 0.92 }),
    ]);
    const idle = finding("hang/wait-graph", [], {
      data: { fact: "nothing-pending", pending: 0 },
      weight: 0.6,
    });
    const dumps = new Map(
      Array.from({ length: 16 }, (_, rank) => [rank, { dump: { isCut: false } } as never]),
    );
    const verdict = fuse({ ...job(), dumps }, [died, idle], []);
    expect(verdict).toMatchObject({ kind: "crash", suspects: [{ ranks: [9] }] });
    expect(verdict.confidence).toBe(ask([died]).confidence);
  });

  describe("whom the judge of slowness names", () => {
    const tested = (ranks: number[], weight = 0.92): Finding =>
      finding("validation/tests", [accuse({ ranks, weight })], {
        data: { fact: "tested-slow", ratio: 1.4, tests: 3 },
      });
    const either = [
      accuse({ type: "rank", weight: 0.55, why: "its GPU may be slow" }),
      accuse({ type: "rank", cause: "cpu-stall", weight: 0.4, why: "its CPU may be late" }),
    ];

    it("has its posterior as confidence and score, whatever else is missing or was before", () => {
      const verdict = ask([slower(), judge(judgedRank(0.93))], { incidents: { node0: 0 } });
      expect(verdict).toMatchObject({
        kind: "fail-slow",
        confidence: 0.93,
        suspects: [{ ranks: [3], cause: "gpu-slow", score: 0.93 }],
        reasoning: { conflicts: [], prior: null },
      });
      const half = { ...job(), watched: new Map() as never, mixesRuns: true };
      expect(fuse(half, [judge(judgedRank(0.93))], []).confidence).toBe(0.93);
      expect(ask([judge(judgedRank(1))]).confidence).toBe(0.99);
    });

    it("is as sure as of the ranks and of the one cause that it names for them", () => {
      const one = accuse({ type: "rank", weight: 0.6 });
      expect(ask([judge(judgedRank(0.9), [one], { weight: 0.9 })]).confidence).toBe(0.6);
    });

    it("is not believed less because another witness names it, too, nor more", () => {
      for (const weight of [0.15, 0.6, 0.92])
        expect(ask([judge(judgedRank(0.7)), tested([3], weight)])).toMatchObject({
          confidence: 0.7,
          suspects: [{ ranks: [3], cause: "gpu-slow" }],
        });
    });

    it("is shown beside whoever contradicts, and is not sure then", () => {
      const others = Array.from({ length: 16 }, (_, rank) => rank).filter((rank) => rank !== 3);
      for (const clears of [[], others]) {
        const verdict = ask([judge(judgedRank(0.97), undefined, { clears }), tested([9], 0.6)]);
        expect(verdict.suspects).toMatchObject([{ ranks: [3] }]);
        expect(verdict.confidence).toBe(0.79);
        expect(verdict.reasoning!.conflicts).toMatchObject([{ who: "rank 9" }]);
      }
      expect(ask([judge(judgedRank(0.97)), tested([9], 0.3)]).confidence).toBe(0.97);
    });

    it("is two suspects where its GPU and its CPU cannot be told apart, neither nearly sure", () => {
      const verdict = ask([slower(), judge(judgedRank(0.96), either)]);
      expect(verdict.confidence).toBe(0.96);
      expect(verdict.suspects).toMatchObject([
        { ranks: [3], cause: "gpu-slow", score: 0.555, why: "its GPU may be slow" },
        { ranks: [3], cause: "cpu-stall", score: 0.404, why: "its CPU may be late" },
      ]);
      expect(verdict.summary).toBe(
        "Rank 3 on node0 computes slowly, or is held up by its CPU, which issues work late: 190 ms of its own per iteration, 128 ms before, and that slows the job down (1.50 times as long).",
      );
      const todo = verdict.actions.map((action) => action.do);
      expect(todo).toEqual(["check-gpu", "check-cpu", "replace-machine"]);
      const sure = [accuse({ weight: 0.9 }), accuse({ cause: "cpu-stall", weight: 0.09 })];
      expect(ask([judge(judgedRank(0.99), sure)]).suspects[0]!.score).toBe(0.79);
    });

    it.each([
      ["a matrix product that was slow", tested([3], 0.5), "gpu-slow"],
      [
        "a stack in the data loader",
        finding("hang/stacks", [accuse({ type: "rank", cause: "dataloader", weight: 0.25 })]),
        "dataloader",
      ],
      [
        "garbage collection that took the time",
        finding("host/python-time", [
          accuse({ type: "rank", cause: "garbage-collection", weight: 0.88 }),
        ]),
        "garbage-collection",
      ],
      [
        "clocks of its machine's GPUs",
        finding("machines/peers", [
          accuse({ kind: "faulty-machine", type: "machine", name: "node0", ranks: [2, 3] }),
        ]),
        "gpu-slow",
      ],
    ])("has the cause that %s shows", (_, witness, cause) => {
      const verdict = ask([judge(judgedRank(0.9), either), witness]);
      expect(verdict.suspects).toMatchObject([{ ranks: [3], cause, score: 0.9 }]);
      expect(verdict.confidence).toBe(0.9);
      expect(verdict.suspects[0]!.evidence).toContain(witness.id);
    });

    it("is several culprits where one finding names several, and they share its posterior", () => {
      const two = [accuse({ ranks: [3] }), accuse({ ranks: [9] })];
      const verdict = ask([slower(), judge(judgedRank(0.9), two)]);
      expect(verdict.suspects).toMatchObject([
        { ranks: [3], score: 0.5 },
        { ranks: [9], score: 0.5 },
      ]);
      expect(verdict.confidence).toBe(0.9);
      expect(verdict.reasoning!.conflicts).toEqual([]);
    });

    it("stands beside whom else the judge weighed", () => {
      const fact = judgedRank(0.8);
      const rivals = [
        { what: "nobody", ranks: [], probability: 0.1 },
        { what: "ranks", ranks: [5], probability: 0.06 },
        { what: "unseen", ranks: [], probability: 0.03 },
      ];
      const { conflicts } = ask([
        judge({ ...fact, judged: { ...fact.judged, rivals } }),
      ]).reasoning!;
      expect(conflicts.map(({ who, probability }) => [who, probability])).toEqual([
        ["rank 5", 0.06],
        ["a rank that left no record", 0.03],
      ]);
    });

    it("tells how much longer iterations take where nothing else does", () => {
      expect(ask([judge(judgedRank(0.9))]).answer!.slower).toBe(
        "1.45 times as long: 140 ms → 203 ms per iteration",
      );
    });

    it("gives way to what stopped the job", () => {
      const stuck = finding("hang/wait-graph", [accuse({ ...STUCK, ranks: [9], weight: 0.9 })]);
      expect(ask([judge(judgedRank(0.9)), stuck])).toMatchObject({
        kind: "hang",
        suspects: [{ ranks: [9] }],
      });
    });

    it("is nobody with the posterior of that, of a job that looks healthy", () => {
      const even = finding("slow/judge", [], {
        data: { fact: "even-ranks", evenRanks: 16, comparedIterations: 40, probability: 0.84 },
      });
      const left = Array.from({ length: 16 }, (_, rank) => ({
        rank,
        state: "",
        ended: { how: "exit", code: 0 },
      }));
      const done = { ...job(), probes: left as unknown as NonNullable<Job["probes"]> };
      expect(fuse(done, [even], [])).toMatchObject({ kind: "healthy", confidence: 0.84 });
    });
  });

  describe("of a job that somebody ended from outside", () => {
    const ended = (ranUntilEnd: boolean): Finding =>
      finding(
        "crash/first-error",
        [accuse({ kind: "crash", type: "rank", ranks: [], cause: "scheduler", weight: 0.92 })],
        { data: { fact: "ended-from-outside", signature: "", ranUntilEnd } },
      );
    const stuck = finding("hang/wait-graph", [
      accuse({ kind: "hang", type: "rank", cause: "cpu-stall", weight: 0.9 }),
    ]);

    it("names who it hung for, and the end is no rival", () => {
      const verdict = ask([ended(false), stuck]);
      expect(verdict).toMatchObject({ kind: "hang", suspects: [{ ranks: [3] }] });
      expect(verdict.reasoning!.conflicts).toEqual([]);
      expect(verdict.confidence).toBe(ask([stuck]).confidence);
    });

    it("names the end where nobody is known to have stopped it, or where it ran until then", () => {
      for (const findings of [[ended(false)], [ended(true), stuck]])
        expect(ask(findings)).toMatchObject({ kind: "crash", suspects: [{ cause: "scheduler" }] });
    });

    it("says that it hung where it stood still before, whoever ended it", () => {
      const still = finding("crash/first-error", [], {
        data: { fact: "stood-still", stoodStill: true },
        weight: 0.3,
      });
      const verdict = ask([still]);
      expect(verdict).toMatchObject({ kind: "hang", suspects: [] });
      expect(verdict.confidence).toBeLessThan(0.3);
    });
  });
});

describe("what the logs say", () => {
  const told = (confidence: number, more: object = {}): Finding =>
    finding(
      "logs/library",
      [accuse({ kind: "crash", type: "code", ranks: [], cause: "user-program", weight: 0.45 })],
      {
        data: {
          fact: "log-cause",
          category: "user.program",
          signature: "",
          owner: "user",
          action: "",
          stage: "train",
          captures: {},
          nodes: [],
          logConfidence: confidence,
          ...more,
        },
      },
    );

  it("is the verdict's confidence where logs are all that there is", () => {
    expect(ask([told(0.62)])).toMatchObject({ kind: "crash", confidence: 0.62 });
  });

  it("as a mere symptom is a guess, and none beside somebody who is accused for a reason", () => {
    const guess = told(0.1, { isGuess: true });
    expect(ask([guess])).toMatchObject({ confidence: 0.1, suspects: [{ cause: "user-program" }] });
    const stuck = accuse({ kind: "hang", type: "rank", cause: "cpu-stall", weight: 0.5 });
    expect(ask([guess, finding("hang/watchdog", [stuck])])).toMatchObject({
      kind: "hang",
      suspects: [{ ranks: [3], cause: "cpu-stall" }],
    });
  });

  it("as a mere symptom is nothing of a job that stood still before it was ended", () => {
    const still = finding("crash/first-error", [], {
      data: { fact: "stood-still", stoodStill: true },
    });
    expect(ask([told(0.1, { isGuess: true }), still])).toMatchObject({
      kind: "hang",
      suspects: [],
    });
  });
});

describe("dumps whose end is lost", () => {
  const hung = [3, 5].map((rank) =>
    accuse({ kind: "hang", type: "rank", ranks: [rank], cause: "cpu-stall", weight: 0.9 }),
  );
  const confidenceWith = (cut: readonly number[], accused = hung): number => {
    const dumps = Array.from(
      { length: 16 },
      (_, rank) => [rank, { dump: { isCut: cut.includes(rank) } } as never] as const,
    );
    const given = { ...job(), dumps: new Map(dumps) };
    return fuse(given, [finding("hang/wait-graph", accused)], []).confidence;
  };

  it("take confidence by the share of the suspects that they are of", () => {
    const [none, one, both] = [[], [5], [3, 5]].map((cut) => confidenceWith(cut));
    expect(one! / none!).toBeCloseTo(0.75, 2);
    expect(both! / none!).toBeCloseTo(0.5, 2);
  });

  it("take nothing where they are of ranks that nobody suspects", () => {
    expect(confidenceWith([0, 1, 2])).toBe(confidenceWith([]));
  });
});

describe("who only waits", () => {
  const everyone = Array.from({ length: 16 }, (_, rank) => rank);
  const others = (...ranks: number[]): number[] => everyone.filter((one) => !ranks.includes(one));
  const hung = finding("hang/wait-graph", [
    accuse({ kind: "hang", ranks: [9], cause: "gpu-hang", weight: 0.9 }),
  ]);
  const waits = finding("hang/wait-graph", [], { weight: 0.9, clears: others(9) });

  it("is nobody who was slow before the job stopped, and the answer says who that is", () => {
    const slow = finding("slow/judge", [], {
      data: { fact: "slow-before-stop", ranks: [12], growthMs: 200 },
    });
    const verdict = ask([hung, waits, slow]);
    expect(verdict.suspects.map(({ ranks }) => ranks)).toEqual([[9]]);
    expect(verdict.victims).toEqual(others(9, 12));
    expect(verdict.answer?.waiting).toBe("14 other ranks only wait; rank 12 was slow before that");
    expect(ask([hung, waits]).victims).toEqual(others(9));
  });

  it("is nobody whose GPU is unlike its peers', but whoever is only seen outside communication", () => {
    const odd = finding("machines/peers", [
      accuse({ kind: "faulty-machine", type: "rank", ranks: [12], cause: "unknown", weight: 0.9 }),
    ]);
    expect(ask([hung, waits, odd]).victims).toEqual(others(9, 12));
    const outside = finding("hang/stacks", [
      accuse({ kind: "hang", type: "rank", ranks: [12], cause: "cpu-stall", weight: 0.6 }),
    ]);
    expect(ask([hung, waits, outside]).victims).toEqual(others(9));
  });

  it("of a crash whose rank is unknown: nobody of that machine, and nobody who only complains", () => {
    const died = finding("crash/first-error", [
      accuse({
        kind: "crash",
        type: "machine",
        ranks: [],
        name: "node1",
        cause: "gpu-error",
        weight: 0.8,
      }),
    ]);
    const complain = finding("crash/first-error", [], { weight: 0.3, clears: everyone });
    expect(ask([died, complain]).victims).toEqual([]);
    expect(ask([died, complain, waits]).victims).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe("two causes at once", () => {
  it("have actions of their own, each for its own suspects", () => {
    const verdict = ask([
      slower(),
      finding("slow/judge", [
        accuse({ ranks: [3], cause: "dataloader", weight: 0.9 }),
        accuse({ ranks: [12], cause: "gpu-slow", weight: 0.88 }),
      ]),
    ]);
    expect(verdict.suspects.map(({ cause }) => cause).sort()).toEqual(["dataloader", "gpu-slow"]);
    const targets = (action: string): string[] =>
      verdict.actions.filter((one) => one.do === action).map(({ target }) => target);
    expect(targets("check-gpu")).toEqual(["node1 (rank 12)"]);
    expect(targets("check-storage")).toEqual(["node0 (rank 3)"]);
    for (const { command, target } of verdict.actions)
      if (command !== undefined) expect(command).toContain(target.slice(0, 5));
  });
});

describe("when it was", () => {
  const slowRank = (more: object): Finding =>
    finding("slow/judge", [accuse({ ranks: [3], weight: 0.9 })], {
      data: {
        ...judgedRank(0.9),
        sinceStart: true,
        recordFrom: 20,
        iteration: 1,
        growthMs: 45,
        ...more,
      },
    });

  it("is not claimed of what was slow in all of a record that begins late", () => {
    const verdict = ask([slowRank({})]);
    expect(verdict.when.iteration).toBeNull();
    expect(verdict.summary).toContain("from the first iterations seen on");
    const whole = ask([slowRank({ recordFrom: 2 })]);
    expect(whole.when.iteration).toBe(1);
    expect(whole.summary).not.toContain("first iterations seen");
  });

  it("is as iteration times show it, where a rank loses most of what they grew by", () => {
    expect(ask([slower(), slowRank({ recordFrom: 3 })]).when.iteration).toBe(40);
    expect(ask([slower(), slowRank({ recordFrom: 3, growthMs: 5 })]).when.iteration).toBe(1);
  });

  it("is told as past where it is over, in every sentence", () => {
    const times = { sinceStart: false, iteration: 40, until: 80 };
    const over = finding("iterations/slow-down", [], {
      data: { ...SLOWER, until: 80 },
      weight: 0.95,
    });
    const { answer, summary } = ask([over, slowRank(times)]);
    expect(effectOf(answer!)).toMatch(
      /^This slowed the job down from iteration 40 to 80; it is over now\. The job took 1\.50 times as long/,
    );
    expect(summary).toContain("computed slowly");
    expect(effectOf(ask([slower(), slowRank({ ...times, until: null })]).answer!)).toMatch(
      /^The job takes 1\.50 times as long/,
    );
  });
});

it("a link that is found within ranks which cannot communicate is what is wrong with all of them", () => {
  const stuck = (ranks: number[], weight: number): Finding =>
    finding("hang/wait-graph", [
      accuse({ kind: "hang", type: "link", ranks, cause: "network-hang", weight }),
    ]);
  const link = (ranks: number[]): Finding =>
    finding("hang/connections", [
      accuse({ kind: "hang", type: "link", ranks, cause: "network-hang", weight: 0.9 }),
    ]);
  const verdict = ask([
    stuck([0, 1, 2, 3], 0.9),
    link([2, 3]),
    stuck([8, 9, 10, 11], 0.9),
    link([8, 9]),
  ]);
  expect(verdict.suspects.flatMap(({ ranks }) => ranks).toSorted((a, b) => a - b)).toEqual([
    2, 3, 8, 9,
  ]);
});

it("a job that became slower on all ranks alike is a slowdown without a suspect, not healthy", () => {
  const even = finding("slow/judge", [], {
    weight: 0.2,
    data: { fact: "even-ranks", evenRanks: 16, comparedIterations: 6, probability: 0.9 },
  });
  const verdict = ask([slower(), even]);
  expect(verdict).toMatchObject({ kind: "fail-slow", suspects: [], victims: [] });
  expect(verdict.summary).toContain("No rank stands out: all became slower alike.");
  expect(verdict.wouldHelp.join()).toContain("profiler traces");
  const few = { ...even, data: { ...even.data, evenRanks: 4 } } as typeof even;
  expect(ask([slower(), few]).summary).toContain(
    "None of the 4 ranks that were compared stands out: they may wait for one of the other 12, of which nothing is known.",
  );
});
