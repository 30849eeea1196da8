import { describe, expect, it } from "vitest";
import { jobOf } from "../../../../test/support/live/messages.ts";
import type { JobReport, SharesReport } from "../../wire/messages.ts";
import { JobRun } from "../job/job-run.ts";
import { JudgeFeed } from "./judge-feed.ts";
import type { ToJudge } from "./judge-host.ts";
import type { Judging } from "./judge-thread.ts";

const ALL = { has: () => true };

/** A judge that writes down what it is told; one list a run. */
function listening(): { readonly judging: Judging; readonly told: ToJudge[][] } {
  const told: ToJudge[][] = [];
  const judging: Judging = {
    open() {
      const own: ToJudge[] = [];
      told.push(own);
      return { tell: (message) => void own.push(message), close: () => undefined };
    },
    close: () => Promise.resolve(),
  };
  return { judging, told };
}

function runOf(name: string): JobRun {
  return new JobRun({ ...jobOf("job", []), run: name }, null);
}

function take(
  run: JobRun,
  agent: string,
  ranks: readonly number[],
  members: readonly number[],
): void {
  const groups = ranks.map((rank) => ({
    key: "c-1",
    name: "c-1",
    desc: "DATA_PARALLEL",
    groupRank: members.indexOf(rank),
    size: members.length,
    ranks: members,
  }));
  const report: JobReport = {
    ...jobOf("job", ranks),
    run: run.run,
    worldSize: 4,
    ranks: jobOf("job", ranks).ranks.map((one, i) => ({ ...one, groups: [groups[i]!] })),
  };
  run.take(agent, `machine-${agent}`, report, ALL);
}

/** Two slots; a rank's numbers are its own and ten more. */
function sharesOf(ranks: readonly number[]): SharesReport {
  const column = (): Uint16Array =>
    Uint16Array.from([...ranks, ...ranks], (rank, i) => rank + (i < ranks.length ? 0 : 10));
  return {
    kind: "shares",
    job: "job",
    run: "run",
    ranks,
    firstSlot: 7,
    wires: [],
    inside: column(),
    late: column(),
    gpu: column(),
    onWire: column(),
    issued: column(),
    ended: column(),
    wireMs: new Float32Array(0),
    wireCount: new Uint16Array(0),
  };
}

const layouts = (told: readonly ToJudge[]) =>
  told.flatMap((one) => (one.say === "layout" ? [one.layout] : []));

describe("JudgeFeed", () => {
  it("tells whom to compare once all ranks are known, and again when what agents tell has settled", () => {
    const { judging, told } = listening();
    const feed = new JudgeFeed(judging, () => undefined);
    const run = runOf("run");
    take(run, "a", [0, 1], [0, 1, 2, 3]);
    feed.tick(run, 0);
    feed.tick(run, 1000);
    expect(layouts(told[0]!)).toEqual([]);
    take(run, "b", [3, 2], [0, 1, 2, 3]);
    feed.tick(run, 1500);
    expect(layouts(told[0]!)).toEqual([
      {
        job: {
          ranks: [0, 1, 2, 3],
          groups: [{ name: "DATA_PARALLEL", places: [0, 1, 2, 3] }],
          machineOf: [0, 0, 1, 1],
        },
        wireKeys: ["c-1"],
      },
    ]);
    // Said again, and nothing is new.
    take(run, "b", [3, 2], [0, 1, 2, 3]);
    for (const nowMs of [2000, 3000, 5000]) feed.tick(run, nowMs);
    expect(layouts(told[0]!)).toHaveLength(1);
    take(run, "b", [3, 2], [3, 2]);
    for (const nowMs of [6000, 7000]) feed.tick(run, nowMs);
    expect(layouts(told[0]!)).toHaveLength(1);
    feed.tick(run, 8500);
    expect(layouts(told[0]!)).toHaveLength(2);
  });

  it("does not wait for ranks that never have an agent", () => {
    const { judging, told } = listening();
    const feed = new JudgeFeed(judging, () => undefined);
    const run = runOf("run");
    take(run, "a", [0, 1], [0, 1]);
    for (const nowMs of [0, 1000, 2500]) feed.tick(run, nowMs);
    expect(layouts(told[0]!)).toMatchObject([{ job: { ranks: [0, 1] } }]);
  });

  it("takes an agent's word for its own ranks alone, in the run that it told of", () => {
    const { judging, told } = listening();
    const feed = new JudgeFeed(judging, () => undefined);
    const run = runOf("run");
    take(run, "a", [0, 1], [0, 1]);
    take(run, "b", [2, 3], [2, 3]);
    feed.shares(run, "a", sharesOf([0, 1]), 5);
    feed.shares(run, "a", sharesOf([1, 2]), 6);
    feed.shares(run, "b", sharesOf([0, 1]), 7);
    feed.shares(run, "a", { ...sharesOf([0, 1]), run: "another" }, 8);
    const shares = told[0]!.flatMap((one) => (one.say === "shares" ? [one] : []));
    expect(shares.map(({ told: { ranks }, nowMs }) => [nowMs, ranks])).toEqual([
      [5, [0, 1]],
      [6, [1]],
    ]);
    expect(shares[1]!.told.inside).toEqual(Uint16Array.of(1, 11));
    expect(shares[1]!.told.ended).toEqual(Uint16Array.of(1, 11));
  });

  it("begins with another judge where another run has begun, and tells it of uneven micro-batches", () => {
    const { judging, told } = listening();
    const feed = new JudgeFeed(judging, () => undefined);
    const [first, second] = [runOf("one"), runOf("two")];
    feed.tick(first, 0);
    feed.rebalanced("5,3", 1000);
    feed.tick(second, 2000);
    expect(told).toHaveLength(2);
    expect(told.map((own) => own.find(({ say }) => say === "micro-batches"))).toMatchObject([
      { shares: "5,3", fromMs: 1000 },
      { shares: "5,3", fromMs: -Infinity },
    ]);
  });
});
