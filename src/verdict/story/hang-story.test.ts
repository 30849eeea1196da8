import { describe, expect, it } from "vitest";
import { buildJob } from "../../ingest/build-job.ts";
import type { Absence, StuckOperator } from "../../model/facts.ts";
import type { Suspect, Verdict } from "../../model/verdict.ts";
import { hangStory } from "./hang-story.ts";

const job = buildJob([], null);

const suspect: Suspect = {
  type: "rank",
  ranks: [3],
  machine: null,
  link: null,
  name: null,
  cause: "cpu-stall",
  score: 0.9,
  why: "its CPU is stuck",
  evidence: ["f1"],
};

function verdictOf(
  ops: readonly StuckOperator[],
  suspects: readonly Suspect[] = [suspect],
): Verdict {
  return {
    schema: "faultline.verdict/1",
    kind: "hang",
    summary: "",
    confidence: 0.9,
    when: { iteration: null, from: null, to: null },
    suspects,
    victims: [],
    owner: null,
    actions: [],
    findings: [
      {
        id: "f1",
        method: "hang/wait-graph",
        says: "",
        weight: 1,
        at: [],
        data: { fact: "waiting-ranks", ops, stuckOps: ops.length },
      },
    ],
    inputs: [],
    missing: [],
    wouldHelp: [],
  };
}

const op = (
  what: string,
  arrived: number[],
  absent: [number, Absence][],
  p2p = false,
): StuckOperator => ({
  what,
  role: "",
  group: "",
  seq: 1,
  p2p,
  arrived,
  absent: absent.map(([rank, why]) => ({ rank, why })),
});

describe("the story of a hang", () => {
  it("goes from the farthest rank that waits to the one that never arrived", () => {
    const { story } = hangStory(
      job,
      verdictOf([
        op("all_reduce #9 of TP", [2], [[3, "not-enqueued"]]),
        op("all_reduce #4 of DP", [4], [[6, "behind"]]),
        op("transfer", [6], [[2, "behind"]], true),
      ]),
    );
    expect(story!.hops.map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ["collective", 4, 6],
      ["transfer", 6, 2],
      ["collective", 2, 3],
    ]);
    expect(story!.hops.at(-1)!.bars).toEqual([
      { rank: 2, machine: null, ms: null, beforeMs: null, role: "waits" },
      { rank: 3, machine: null, ms: null, beforeMs: null, role: "absent" },
    ]);
    expect(story!.ends).toBe(
      "Rank 3 waits for no other rank and does not arrive. Its CPU is stuck.",
    );
  });

  it("does not begin at the suspect where ranks wait for each other in a circle", () => {
    const ops = [
      op("all_reduce #496 of TP_0", [0], [[3, "behind"]]),
      op("transfer from 0 to 4", [4], [[0, "behind"]], true),
      op("transfer from 4 to 3", [3], [[4, "behind"]], true),
    ];
    const { story } = hangStory(job, verdictOf(ops));
    expect(story!.hops.map(({ from, to }) => [from, to])).toEqual([
      [4, 0],
      [0, 3],
    ]);
    expect(story!.ends).toContain("Rank 3 does not arrive: it is stuck elsewhere");
  });

  it("tells of an operator that all are in and nobody leaves", () => {
    const { story } = hangStory(job, verdictOf([op("all_reduce #1", [2, 3], [])]));
    expect(story!.hops).toHaveLength(1);
    expect(story!.hops[0]!.bars.map(({ role }) => role)).toEqual(["waits", "waits"]);
    expect(story!.ends).toContain("All members have arrived, and it does not complete");
  });

  it("says what is lacking where nothing leads to the suspect, or nobody waits", () => {
    const elsewhere = hangStory(job, verdictOf([op("all_reduce #1", [0], [[1, "silent"]])]));
    expect(elsewhere.story).toBeNull();
    expect(elsewhere.lacks).toHaveLength(1);
    expect(hangStory(job, verdictOf([])).lacks).toHaveLength(1);
  });

  it("draws at most 64 of a large group, those that matter among them", () => {
    const arrived = Array.from({ length: 2000 }, (_, rank) => rank + 4);
    const { story } = hangStory(job, verdictOf([op("all_reduce", arrived, [[3, "silent"]])]));
    const [hop] = story!.hops;
    expect(hop!.bars).toHaveLength(64);
    expect(hop!.leftOut).toBe(1937);
    expect(hop!.bars.find(({ rank }) => rank === 3)!.role).toBe("absent");
    expect(hop!.bars.some(({ rank }) => rank === hop!.from)).toBe(true);
  });
});
