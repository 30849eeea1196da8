import { describe, expect, it } from "vitest";
import type { Rank } from "../../model/ids.ts";
import type { Job } from "../../model/job.ts";
import { timeBreakdowns } from "../../methods/localize/time-breakdown.ts";
import type { OwnTime } from "./own-times.ts";
import { slowStory } from "./slow-story.ts";
import { slowJob, storyInput } from "../../../test/support/slow-job.ts";
import { slowWhatIf } from "./what-if.ts";
import { few } from "../../../test/support/cases.ts";

describe("the story of a slow-down", () => {
  const FAULTS: [string, number][] = [
    ["gpu-slow:rank=13:from=12:severity=2.5", 13],
    ["gpu-slow:rank=0:from=12:severity=2", 0],
    ["cpu-stall:rank=6:from=12:severity=6", 6],
    ["dataloader:rank=3:from=12:severity=12", 3],
    ["gpu-slow:rank=9:severity=2", 9],
  ];
  it.each(few(FAULTS, 1))(
    "leads from a rank that only waits to the slow one: %s",
    async (fault, rank) => {
      const { job, verdict } = await slowJob(fault);
      const { story, lacks } = await slowStory(storyInput(job, verdict));
      expect(lacks).toEqual([]);
      const { hops, ends } = story!;
      expect(hops.length).toBeGreaterThanOrEqual(3);
      expect(hops[0]!.from).not.toBe(rank);
      for (const [k, hop] of hops.entries()) {
        if (k > 0) expect(hop.from).toBe(hops[k - 1]!.to);
        if (hop.kind !== "own") expect(shortest(hop.bars)).toBe(hop.to);
        expect(hop.bars.filter(({ role }) => role === "late").map((bar) => bar.rank)).toEqual([
          hop.to,
        ]);
      }
      const last = hops.at(-1)!;
      expect(last).toMatchObject({ kind: "own", from: rank, to: rank });
      expect(last.bars.toSorted((a, b) => b.ms! - a.ms!)[0]!.rank).toBe(rank);
      expect(ends).toContain(
        `Rank ${rank} (node00${Math.floor(rank / 4)}) waits for no other rank`,
      );
      expect(new Set(hops.map(({ from }) => from)).size).toBe(hops.length);
    },
  );

  it("ends at a slow link, where both sides are and nobody came late", async () => {
    const { job, verdict } = await slowJob("network-slow:link=2-10:from=12:severity=40");
    expect(verdict.suspects[0]).toMatchObject({ type: "link", ranks: [2, 10] });
    const { story } = await slowStory(storyInput(job, verdict));
    const last = story!.hops.at(-1)!;
    expect(last.kind).not.toBe("own");
    expect(last.bars.map(({ rank }) => rank).sort((a, b) => a - b)).toEqual([2, 10]);
    expect(last.bars.map(({ role }) => role)).toEqual(["waits", "waits"]);
    expect(last.to).toBe(last.from);
    expect(story!.ends).toContain("the link between ranks 2 and 10 is slow");
  });

  it("is not told where the waiting leads to another than the verdict names, and says where to", async () => {
    const { job, verdict } = await slowJob("gpu-slow:rank=13:from=12:severity=2.5");
    const suspects = [{ ...verdict.suspects[0]!, ranks: [4] }];
    const { story, lacks } = await slowStory(storyInput(job, { ...verdict, suspects }));
    expect(story).toBeNull();
    expect(lacks.join()).toContain("rank 13 (node003)");
  });

  it("asks for no more ranks than it may", async () => {
    const { job, verdict } = await slowJob("gpu-slow:rank=13:from=12:severity=2.5");
    const asked = new Set<Rank>();
    const input = storyInput(job, verdict);
    await slowStory({
      ...input,
      mostRanks: 6,
      operatorsOf: (ranks) => {
        for (const rank of ranks) asked.add(rank);
        return input.operatorsOf(ranks);
      },
    });
    expect(asked.size).toBe(6);
  });

  it("shows names of strangers as text of bounded length", async () => {
    const { job, verdict } = await slowJob("gpu-slow:rank=13:from=12:severity=2.5");
    const { story } = await slowStory(
      storyInput(renamed(job, "\u202e<b>" + "x".repeat(1e6)), verdict),
    );
    const text = JSON.stringify(story);
    expect(text.length).toBeLessThan(40_000);
    expect(text).not.toContain("\u202e");
    expect(text).toContain("\ufffd<b>x");
  });
});

describe("what an iteration would take without the suspect", () => {
  it("is about what it took before where only one rank became slow", async () => {
    const [now, before, without] = await whatIf("gpu-slow:rank=13:from=12:severity=2.5", null);
    expect(now).toBeGreaterThan(1.3 * before!);
    expect(without).toBeLessThan(before! + 0.1 * (now! - before!));
  });

  it("is longer where a second rank became slow, too", async () => {
    const fault = "gpu-slow:rank=13,2:from=12:severity=2.5";
    const [now, before, without] = await whatIf(fault, 13);
    expect(without).toBeGreaterThan(before! + 0.3 * (now! - before!));
    expect(without).toBeLessThanOrEqual(now!);
  });
});

describe("what an iteration would take without a slow link", () => {
  const fault = "network-slow:link=2-10:from=12:severity=40";

  it("is what it took before and what the latest rank needs by itself, not what one pair of ranks measured", async () => {
    const [now, before, without] = await whatIf(fault, null);
    expect(now).toBeGreaterThan(2 * before!);
    expect(without).toBeGreaterThanOrEqual(before!);
    expect(without).toBeLessThan(before! + 0.05 * (now! - before!));
  });

  it.each([
    [{}, 100, "outside communication no rank needs more than before"],
    [{ 3: 20 }, 120, "outside communication rank 3 needs most, 20.0 ms more than before"],
    // Mending the link does not mend the rank at its end.
    [{ 3: 20, 10: 50 }, 150, "outside communication rank 10 needs most, 50.0 ms more than before"],
    [{ 3: 900 }, 300, "outside communication rank 3 needs most, 900 ms more than before"],
  ])("with ranks that are late by themselves %j is %d ms", async (late, ms, says) => {
    const { verdict } = await slowJob(fault);
    const own = new Map(
      [1, 2, 3, 10].map((rank) => [rank, ownTime((late as Record<number, number>)[rank] ?? 0)]),
    );
    const iterations = { shown: [3], slow: [3, 4], healthy: [1, 2], slowMs: 300, healthyMs: 100 };
    const told = slowWhatIf(verdict, iterations, own)!;
    expect(told.bars.map((bar) => [bar.label, bar.ms])).toEqual([
      ["now", 300],
      ["before", 100],
      ["without the link between ranks 2 and 10", ms],
    ]);
    expect(told.says).toContain(
      `an iteration took 100 ms before; ${says}. The rest of the added time`,
    );
    expect(told.says).toContain(`about ${ms} ms instead of 300 ms`);
  });
});

function ownTime(moreMs: number): OwnTime {
  const ownMs = Float64Array.of(40, 40, 40 + moreMs, 40 + moreMs);
  return { iteration: Float64Array.of(1, 2, 3, 4), totalMs: ownMs, ownMs, program: 0 };
}

/** `only`: the suspect that is asked about, of several. */
async function whatIf(fault: string, only: Rank | null): Promise<number[]> {
  const { job, verdict } = await slowJob(fault);
  const { iterations } = await slowStory(storyInput(job, verdict));
  const suspects = verdict.suspects
    .filter(({ ranks }) => only === null || ranks.includes(only))
    .map((suspect) => (only === null ? suspect : { ...suspect, ranks: [only] }));
  const all = job.rankOperators.ranks.flatMap((rank) => job.rankOperators.fetch(rank) ?? []);
  const told = slowWhatIf({ ...verdict, suspects }, iterations!, timeBreakdowns(all, job.groups));
  expect(told!.bars.map(({ kind }) => kind)).toEqual(["now", "before", "without"]);
  return told!.bars.map(({ ms }) => ms);
}

function shortest(bars: readonly { rank: Rank; ms: number | null }[]): Rank {
  return bars.toSorted((a, b) => a.ms! - b.ms!)[0]!.rank;
}

function renamed(job: Job, name: string): Job {
  const ranks = new Map([...job.ranks].map(([rank, info]) => [rank, { ...info, machine: name }]));
  return { ...job, ranks, groups: job.groups.map((group) => ({ ...group, desc: name })) };
}
