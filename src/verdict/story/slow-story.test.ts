import { describe, expect, it } from "vitest";
import { comparedRanks, judgedLink, judgedRank } from "../../../test/support/judged.ts";
import { buildJob } from "../../ingest/build-job.ts";
import { parseJobFile } from "../../ingest/job-file.ts";
import type { Fact } from "../../model/facts.ts";
import type { Accusation } from "../../model/finding.ts";
import { fuse } from "../fuse.ts";
import { slowStory } from "./slow-story.ts";

const ranks = Array.from({ length: 16 }, (_, rank) => ({ rank, machine: `node${rank >> 3}` }));
const job = buildJob([], parseJobFile({ worldSize: 16, ranks }, "job.json"));

function storyOf(data: Fact, ...accused: readonly Partial<Accusation>[]) {
  const accuses = accused.map((one): Accusation => ({
    kind: "fail-slow",
    type: "rank",
    ranks: [3],
    link: null,
    cause: "gpu-slow",
    weight: 0.95,
    why: "",
    ...one,
  }));
  const finding = { says: "", weight: 0.95, at: [], data, accuses, clears: [] };
  return slowStory(job, fuse(job, [{ ...finding, id: "f1", method: "slow/judge" }], []));
}

describe("the story of a slow job", () => {
  it("says who leads whom by how much, and what it does instead of waiting", () => {
    const { story, lacks } = storyOf(judgedRank(0.97), {});
    expect(lacks).toEqual([]);
    expect(story!.hops.map(({ kind, title, says }) => [kind, title, says])).toEqual([
      [
        "inside",
        "time in operators, of an iteration: DATA_PARALLEL_1",
        "Rank 3 waits 61 ms less in each iteration than the 3 others of DATA_PARALLEL_1 (before: about as long as they); by chance such leads are 4 ms. Medians of 40 iterations.",
      ],
      [
        "own",
        "time outside operators, of an iteration",
        "Rank 3 spends 190 ms, 128 ms before; its peers spend 130 ms.",
      ],
    ]);
    expect(story!.ends).toBe(
      "Rank 3 (node0) waits for no other rank: its GPU computes slowly. An iteration takes 203 ms, 140 ms before.",
    );
  });

  it("draws each rank now and before, with the slow one marked", () => {
    const [inside, own] = storyOf(judgedRank(0.97), {}).story!.hops;
    expect(inside!.bars.map(({ rank, ms, beforeMs, role }) => [rank, ms, beforeMs, role])).toEqual([
      [0, 74, 14, "waits"],
      [1, 74, 14, "waits"],
      [2, 74, 14, "waits"],
      [3, 13, 12, "late"],
    ]);
    expect(own!.bars.at(-1)).toMatchObject({ rank: 3, machine: "node0", ms: 190, beforeMs: 128 });
  });

  it("names both causes where nothing decides between them", () => {
    const cpu = { cause: "cpu-stall", weight: 0.4 } as const;
    expect(storyOf(judgedRank(0.97), { weight: 0.5 }, cpu).story!.ends).toContain(
      "its GPU computes slowly, or its CPU is late to issue work.",
    );
  });

  it("of what was slow from the first record on has no time before", () => {
    const compared = comparedRanks();
    const given = { ...compared, leadMs: [null, 61] as const };
    const since = compared.ranks.map((one) => ({ ...one, ownMs: [null, one.ownMs[1]] as const }));
    const fact = judgedRank(0.97, { ...given, ranks: since });
    const { hops, ends } = storyOf(
      { ...fact, judged: { ...fact.judged, healthyMs: null } },
      {},
    ).story!;
    expect(hops[0]!.says).toContain("of DATA_PARALLEL_1; by chance");
    expect(hops[1]!.says).toBe("Rank 3 spends 190 ms; its peers spend 130 ms.");
    expect(ends).not.toContain("before");
  });

  it("compares a slow link with its like", () => {
    const { story } = storyOf(judgedLink(0.9), {
      type: "link",
      ranks: [2, 10],
      link: ["rank:2", "rank:10"],
      cause: "network-slow",
    });
    const [hop] = story!.hops;
    expect(hop!.says).toBe(
      "Communication over the link between ranks 2 and 10 takes at least 62 ms of each iteration, 4.1 ms before; 2 others that carry the same take 4 ms. Medians of 40 iterations.",
    );
    expect(hop!.bars.map(({ label, ms, role }) => [label, ms, role])).toEqual([
      ["ranks 2–10", 62, "late"],
      ["ranks 3–11", 4, "waits"],
      ["ranks 4–12", 3.9, "waits"],
    ]);
    expect(story!.ends).toBe(
      "No rank came late: communication over the link between ranks 2 and 10 is slow. An iteration takes 200 ms, 140 ms before.",
    );
  });

  it("is not told where nobody is suspected, or where the suspect was not compared", () => {
    expect(storyOf({ fact: "remark" })).toEqual({
      story: null,
      lacks: ["No story: the verdict names no rank and no link."],
    });
    expect(storyOf({ fact: "remark" }, {})).toEqual({
      story: null,
      lacks: ["No story: the suspect was not compared with others."],
    });
  });
});
