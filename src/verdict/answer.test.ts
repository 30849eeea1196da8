/** The answer in its parts, on recordings of real jobs: who, what physically, how much slower, what to do first. */
import { existsSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { diagnose } from "../pipeline/diagnose.ts";
import { pictureOfJob } from "../pipeline/picture.ts";
import { actionHead, actionTitle } from "../report/action-words.ts";
import { splitCommands } from "../report/html/commands.ts";
import { incidentMarkdown } from "../report/markdown.ts";
import { judgedLink, judgedRank } from "../../test/support/judged.ts";
import { buildJob } from "../ingest/build-job.ts";
import { parseJobFile } from "../ingest/job-file.ts";
import type { EvenIterations, Fact, Judged } from "../model/facts.ts";
import type { Accusation, Finding } from "../model/finding.ts";
import type { MethodId } from "../model/method.ts";
import { adviceFor } from "./advice.ts";
import { answerOf } from "./answer.ts";
import { commandFor } from "./command.ts";
import { fuse } from "./fuse.ts";
import { effectOf, headlineOf } from "../model/answer.ts";
import { CAUSES } from "../model/cause.ts";
import { physicalWords } from "../model/deviation-words.ts";

const env = { signal: new AbortController().signal, progress: () => undefined };
const KINDS = ["hang", "crash", "fail-slow", "regression", "faulty-machine"] as const;
/** Several tests ask about the same recording: read once. */
const known = new Map<string, ReturnType<typeof diagnose>>();
const recording = (path: string): ReturnType<typeof diagnose> => {
  const found = known.get(path) ?? diagnose({ paths: [path] }, env);
  known.set(path, found);
  return found;
};
afterAll(() => known.clear());

const said = (method: MethodId, data: Fact, accuses?: Partial<Accusation>): Finding => ({
  id: method,
  method,
  says: "",
  weight: 0.95,
  at: [],
  data,
  accuses: accuses
    ? [
        {
          kind: "fail-slow",
          type: "rank",
          ranks: [3],
          link: null,
          cause: "gpu-slow",
          weight: 0.9,
          why: "",
          ...accuses,
        },
      ]
    : [],
  clears: [],
});

describe("a hang whose stacks are among the inputs", async () => {
  const { job, verdict } = await recording("fixtures/recordings/hang3.tar.gz");

  it("names the line in the headline, and advises no second stack", () => {
    expect(headlineOf(verdict.answer!)).toBe(
      "Rank 3 on node003 stopped issuing work: its CPU is stuck; its Python stands at train.py:159 in train_step",
    );
    expect(verdict.actions[0]!.do).toBe("check-code");
    expect(JSON.stringify(verdict.actions)).not.toContain("py-spy");
  });

  it("shows the culprit's whole stack, then its own log, and victims' watchdog lines last, as a count", async () => {
    const { stacks, logs } = await pictureOfJob(job, verdict, env);
    expect(stacks).toMatchObject([{ rank: 3 }]);
    expect(stacks![0]!.frames[0]).toMatch(/^train_step \(.*train\.py:159\)$/);
    expect(logs[0]!.rank).toBe(3);
    const victims = logs.filter(({ rank }) => rank !== 3);
    expect(victims.every(({ lines }) => lines.length === 1)).toBe(true);
    expect(victims.some(({ lines }) => lines[0]!.count > 1)).toBe(true);
  });

  it("cites files where they are", () => {
    const files = verdict.findings.flatMap(({ at }) => at.map(({ file }) => file));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(existsSync(file.slice(0, file.indexOf(".gz") + 3))).toBe(true);
  });
});

describe("a slow link", async () => {
  const { job } = await recording("fixtures/rings/wire-slow.tar.gz");
  const shaky: EvenIterations = {
    fact: "even-iterations",
    evenIterations: 62,
    medianMs: 499,
    variation: 0.352,
    rise: 1,
  };
  const { healthyMs: _, ...judged } = judgedLink(0.9).judged;
  const data: Fact = { ...judgedLink(0.9), judged: { ...judged, healthyMs: null } };
  const verdict = fuse(
    job,
    [
      said("iterations/slow-down", shaky),
      said("slow/judge", data, {
        type: "link",
        ranks: [4, 6],
        link: ["rank:4", "rank:6"],
        cause: "network-slow",
      }),
    ],
    [],
  );

  it("is told with what it costs where the job's pace is too uneven to show it", () => {
    expect(headlineOf(verdict.answer!)).toBe(
      "The link between rank 4 on node004 and rank 6 on node006 is slow: communication takes 58 ms longer per iteration",
    );
    expect(effectOf(verdict.answer!)).toBe(
      "This slows the job down (by less than its iteration times vary, 35 %).",
    );
  });

  it("is not seen by figures: metrics may still tell the physical cause", () => {
    expect(verdict.answer!.isSeen).toBe(false);
  });

  it("is looked at first from the machines at both ends", () => {
    expect(verdict.actions[0]!.command).toBe(
      "ssh node004 'ibstat; rdma statistic show'; ssh node006 'ibstat; rdma statistic show'",
    );
  });

  it("is looked at from both machines also where several ranks of each share it", () => {
    const shared = new Map(
      [...job.ranks].map(([rank, info]) => [rank, { ...info, machine: `n${rank >> 2}` }]),
    );
    const several = { ...verdict.suspects[0]!, ranks: [2, 3, 4, 5] };
    expect(commandFor({ ...job, ranks: shared }, several, "ibstat", null)).toBe(
      "ssh n0 ibstat; ssh n1 ibstat",
    );
  });
});

it("has a command for a slow data loader", async () => {
  const { verdict } = await recording("fixtures/rings/data.tar.gz");
  expect(verdict.actions[0]).toMatchObject({
    do: "check-storage",
    command: "ssh node001 'py-spy dump --pid 3216; iostat -x 1 3'",
  });
});

it("a regression that all traced ranks have is one of the code they run; says its share and what to take out", async () => {
  const { verdict } = await diagnose(
    { paths: ["fixtures/traces/reg-sync.tar.gz"], baseline: ["fixtures/traces/reg-none.tar.gz"] },
    env,
  );
  expect(verdict.answer).toMatchObject({
    who: "the training code",
    what: "waits for the GPU unnecessarily: in cudaDeviceSynchronize, 26 times per step instead of 2",
    where: ["seen on ranks 0, 2, 4"],
  });
  expect(verdict.actions[0]).toMatchObject({
    target: "the training code",
    why: expect.stringMatching(/^take torch\.cuda\.synchronize\(\)/) as string,
  });
  expect(verdict.answer!.slower).toMatch(
    /^1\.17 times as long as the baseline: 448 ms → 522 ms per step; this itself takes [\d.]+ ms of the 7\d[\d.]* ms, the rest is not explained by it$/,
  );
});

describe("a slowdown", async () => {
  const { verdict } = await recording("fixtures/recordings/slow-gpu5.tar.gz");

  it("says which GPU of which machine, and how much slower", () => {
    expect(verdict.answer).toMatchObject({
      who: "GPU 0 of node005 (rank 5)",
      slower: "1.23 times as long: 345 ms → 425 ms per iteration",
      waiting: "the other 7 ranks only wait",
    });
    expect(verdict.actions[0]!.command).toBe(
      "ssh node005 nvidia-smi -i 0 -q -d CLOCK,TEMPERATURE,POWER,PERFORMANCE",
    );
  });

  it("does not argue against itself", () => {
    expect(verdict.summary).not.toMatch(/disagree|nic of rank 2/i);
    expect(verdict.reasoning!.conflicts).toEqual([]);
  });
});

it("a crash says the error and its line, and its traceback is whole", async () => {
  const { job, verdict } = await recording("fixtures/recordings/raise1.tar.gz");
  expect(headlineOf(verdict.answer!)).toMatch(
    /^Rank 1 on node001 died at train\.py:150 in __iter__: ValueError: could not broadcast/,
  );
  const { logs } = await pictureOfJob(job, verdict, env);
  const lines = logs[0]!.lines.map(({ text }) => text);
  expect(logs[0]!.rank).toBe(1);
  expect(lines[0]).toContain("Traceback (most recent call last)");
  expect(lines.filter((text) => text.startsWith("  File "))).toHaveLength(6);
  expect(verdict.actions[0]!.why).toMatch(/^correct train\.py:150 in __iter__; /);
});

it("metrics say what is physically wrong with the device", async () => {
  const { verdict } = await recording("fixtures/metrics/clock-low.prom.gz");
  expect(verdict.summary).toBe(
    "Probably machine gpu-b2-n12 is throttled: 926 MHz, peers 1,845 MHz.",
  );
  const low = { direction: "low", device: "gpu5" } as const;
  const clock = { ...low, metric: "gpu-clocks", value: 645, peers: 1890 };
  const heat = {
    ...low,
    direction: "high",
    metric: "gpu-temperature",
    value: 90,
    peers: 61,
  } as const;
  expect(physicalWords([clock, heat], "gpu5")).toEqual({
    what: "is throttled: 645 MHz at 90 °C, peers 1,890 MHz",
    device: "gpu5",
    isThrottled: true,
  });
  expect(physicalWords([clock, heat], "gpu4")).toBeNull();
  expect(
    physicalWords([{ ...low, metric: "gpu-power-draw", value: 90, peers: 300 }], null),
  ).toBeNull();
});

it("of many machines names three and counts the rest", async () => {
  const { job, verdict } = await recording("fixtures/metrics/clock-low.prom.gz");
  const [first] = verdict.suspects;
  const machines = ["n1", "n2", "n3", "n4", "n5"].map((machine) => ({
    ...first!,
    machine,
    name: machine,
  }));
  const { who } = answerOf({ job, kind: verdict.kind, findings: [] }, machines, [], null)!;
  expect(who).toMatch(/n1 and .*n2 and .*n3 and 2 more$/);
});

it("the traceback of a rank that ran out of memory is whole, and its message ends with a sentence", async () => {
  const { job, verdict } = await recording("fixtures/recordings/oom2.tar.gz");
  expect(headlineOf(verdict.answer!)).toMatch(/is free$/);
  const { logs } = await pictureOfJob(job, verdict, env);
  const lines = logs[0]!.lines.map(({ text }) => text);
  expect(lines[0]).toBe("Traceback (most recent call last):");
  expect(lines.filter((text) => text.startsWith("    "))).not.toEqual([]);
});

it("a GPU that stopped is not told by the line at which its CPU waits for it", async () => {
  const { verdict } = await recording("fixtures/recordings/gpuhang4-tp4.tar.gz");
  expect(headlineOf(verdict.answer!)).toBe(
    "GPU 0 of node004 (rank 4) stopped working: it does not finish what was issued to it",
  );
});

describe("a slow rank", () => {
  const job = buildJob([], parseJobFile({ worldSize: 4 }, "job.json"));
  const fact = judgedRank(0.9);
  const slow = (iteration: number, judged: Judged): Finding =>
    said("slow/judge", { ...fact, iteration, judged }, { type: "rank", cause: "cpu-stall" });
  const undated = { ...fact.judged, healthyMs: null };

  it("slows the job down by about as much as a few iterations rose, if that began with it", () => {
    const rose = said("iterations/slow-down", {
      fact: "even-iterations",
      evenIterations: 20,
      medianMs: 164,
      variation: 0.02,
      rise: 1.12,
      riseFrom: 6,
      riseRatio: 1.154,
    });
    const of = (iteration: number): string =>
      effectOf(fuse(job, [slow(iteration, undated), rose], []).answer!);
    expect(of(7)).toBe("The job takes about 1.15 times as long.");
    expect(of(70)).toBe("This slows the job down (by what factor is not known).");
  });

  it("is not to blame for what slowed the job down long before it", () => {
    const before = said("iterations/slow-down", {
      fact: "slow-down",
      slowDown: true,
      iteration: 7,
      until: null,
      from: null,
      to: null,
      detectedAt: 9,
      beforeMs: 155,
      afterMs: 338,
      ratio: 2.19,
      wastedHours: 0,
      series: "log",
    });
    const { answer } = fuse(job, [before, slow(41, fact.judged)], []);
    expect(headlineOf(answer!)).toMatch(/: 190 ms of its own per iteration, 128 ms before$/);
    expect(answer!.slower).toBeNull();
    expect(answer!.effect).toBe(
      "slows the job down (by how much is not known: since iteration 7 already, it takes 2.19 times as long)",
    );
  });
});

it("tickets and reports have no numbers of findings", async () => {
  const { verdict } = await recording("fixtures/recordings/slow-gpu5.tar.gz");
  expect(incidentMarkdown({ verdict })).not.toMatch(/\bf\d+\b/);
  expect(verdict.reasoning!.wouldChange[0]).toMatch(/^If it is not so that rank 5 waits/);
});

it("of a slow job that ended in good order the end of a log is no proof", async () => {
  const { job, verdict } = await recording("fixtures/recordings/slow-gpu5.tar.gz");
  expect(JSON.stringify(await pictureOfJob(job, verdict, env))).not.toContain("Destroy complete");
});

it("a rank that left the common order is told with the line where it did", async () => {
  const { verdict } = await recording("fixtures/recordings/mismatch1.tar.gz");
  expect(headlineOf(verdict.answer!)).toBe(
    "Rank 1 on node001 called a different collective than its peers, at train.py:165 in train_step",
  );
  expect(verdict.actions[0]!.why).toMatch(/^look at train\.py:165 in train_step: /);
});

it("a stopped process is looked at before it is let go on, each with a command for its machine", async () => {
  const { verdict } = await recording("fixtures/rings/fsdp-stop.tar.gz");
  expect(headlineOf(verdict.answer!)).toBe(
    "Rank 5 on node-005 is stopped: its process is in state T, as SIGSTOP leaves it",
  );
  expect(verdict.actions.map(({ do: what, command }) => [what, command])).toEqual([
    ["check-machine", "ssh node-005 'ps -o stat,wchan -p 873; dmesg -T | tail -n 20'"],
    ["continue-process", "ssh node-005 kill -CONT 873"],
    ["replace-machine", undefined],
  ]);
  // Whatever stands as code in a sentence is copied without its machine.
  const inSentences = verdict.actions.flatMap(({ why }) =>
    splitCommands(why).filter(({ isCommand }) => isCommand),
  );
  expect(inSentences).toEqual([]);
});

it("code is to be corrected at its line, not on the machine that ran it", async () => {
  const { verdict } = await recording("fixtures/recordings/raise1.tar.gz");
  expect(verdict.actions[0]).toMatchObject({ do: "fix-code", target: "train.py:150 (rank 1)" });
  expect(actionHead(verdict.actions[0]!)).toBe("Fix the code · train.py:150 (rank 1)");
});

it("a slow data loader is to be checked, whatever the action's word is", async () => {
  const { verdict } = await recording("fixtures/rings/data.tar.gz");
  expect(verdict.actions[0]!.do).toBe("check-storage");
  expect(actionTitle(verdict.actions[0]!)).toBe("Check the data loader");
});

it("every action of the advice has a title, and a word of somebody's own hook stays as it is", () => {
  const words = CAUSES.flatMap((cause) =>
    KINDS.flatMap((kind) => Object.keys(adviceFor(cause, kind).actions)),
  );
  expect([...new Set(words)].filter((what) => actionTitle({ do: what }) === what)).toEqual([]);
  expect(actionTitle({ do: "page-the-vendor" })).toBe("page-the-vendor");
});
