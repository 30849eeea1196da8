import { describe, expect, it } from "vitest";
import type { GroupReport, JobReport, PointsReport } from "../../wire/messages.ts";
import { until } from "../../../../test/support/until.ts";
import { rankColumns } from "./rank-columns.ts";
import { JobRun } from "./job-run.ts";

const group = (key: string, desc: string, groupRank: number, ranks: number[]): GroupReport => ({
  key,
  name: key,
  desc,
  groupRank,
  size: ranks.length,
  ranks,
});

/** Two stages of four ranks, two machines. */
function report(machine: number, gpu: (rank: number) => number = (rank) => rank % 4): JobReport {
  return {
    kind: "job",
    job: "j",
    run: "r",
    startedMs: 1000,
    worldSize: 8,
    ranks: [0, 1, 2, 3].map((k) => {
      const rank = 4 * machine + k;
      return {
        rank,
        gpu: gpu(rank),
        pid: 1,
        nic: null,
        leaf: null,
        stage: machine,
        groups: [group(`p${k}`, `PIPELINE_PARALLEL_${k}`, machine, [k, 4 + k])],
      };
    }),
  };
}

function points(
  rows: readonly { rank: number; iteration: number; ms: number; inside: number }[],
): PointsReport {
  const floats = (of: (row: (typeof rows)[number]) => number): Float32Array =>
    Float32Array.from(rows, of);
  return {
    kind: "points",
    job: "j",
    run: "r",
    rank: Uint32Array.from(rows, ({ rank }) => rank),
    iteration: Float64Array.from(rows, ({ iteration }) => iteration),
    endMs: Float64Array.from(rows, ({ iteration }) => 1000 * iteration),
    durationMs: floats(({ ms }) => ms),
    collectiveMs: floats(({ inside }) => inside),
    sendMs: floats(() => NaN),
    recvMs: floats(() => 1),
    issueMs: floats(() => 1),
  };
}

function started(): JobRun {
  const run = new JobRun(report(0), null);
  for (const machine of [0, 1])
    run.take(`a${machine}`, `node${machine}`, report(machine), { has: () => true });
  return run;
}

/** Everybody takes 100 ms; `own`: of which by rank outside of communication. */
function iterate(run: JobRun, iteration: number, own: (rank: number) => number, leave = -1): void {
  for (const machine of [0, 1]) {
    const ranks = [0, 1, 2, 3].map((k) => 4 * machine + k).filter((rank) => rank !== leave);
    const rows = ranks.map((rank) => ({ rank, iteration, ms: 100, inside: 99 - own(rank) }));
    run.addPoints(`a${machine}`, points(rows), 1000 * iteration);
  }
  run.count(1000 * iteration + 20_000);
}

const NO_TEMPERATURE = ({ rank }: { rank: readonly number[] }): Float32Array =>
  new Float32Array(rank.length).fill(NaN);
const columnsOf = (run: JobRun, connected: { has(agent: string): boolean } = { has: () => true }) =>
  rankColumns(run, connected, NO_TEMPERATURE);

describe("rankColumns", () => {
  it("says how late each rank is beside those of its own stage", () => {
    const run = started();
    // The second stage does more; rank 6 is late among its own.
    iterate(run, 1, (rank) => (rank === 6 ? 80 : rank >= 4 ? 60 : 20));
    const columns = columnsOf(run);
    expect([...columns.ownMs]).toEqual([20, 20, 20, 20, 60, 60, 80, 60]);
    expect([...columns.lateMs]).toEqual([0, 0, 0, 0, 0, 0, 20, 0]);
    expect([...columns.waitMs][0]).toBe(80);
    expect(columns.pipeline).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
    expect(columns.stage).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  });

  it("lets nobody wait longer than the iteration lasts, though operators run beside each other", () => {
    const run = started();
    iterate(run, 1, (rank) => (rank === 2 ? -40 : 20));
    const { ownMs, waitMs } = columnsOf(run);
    expect([ownMs[2], waitMs[2]]).toEqual([0, 100]);
  });

  it("has nothing to say before the first iteration", () => {
    const columns = columnsOf(started());
    expect(
      [...columns.lateMs, ...columns.durationMs, ...columns.iteration].every(Number.isNaN),
    ).toBe(true);
    expect(columns.rank).toHaveLength(8);
  });

  it("keeps the last values of one that has left, and of a job that stands still", () => {
    const run = started();
    iterate(run, 1, () => 30);
    iterate(run, 2, () => 40, 5);
    const { ownMs, iteration, lateMs } = columnsOf(run);
    expect([ownMs[4], ownMs[5]]).toEqual([40, 30]);
    expect([iteration[4], iteration[5]]).toEqual([2, 1]);
    expect(lateMs[5]).toBe(0);
    expect([...columnsOf(run).ownMs]).toEqual([...ownMs]);
  });

  it("does not show an iteration that few ranks have ended yet", () => {
    const run = started();
    iterate(run, 1, () => 30);
    run.addPoints("a0", points([{ rank: 0, iteration: 2, ms: 999, inside: 1 }]), 1500);
    run.count(1600);
    expect([...columnsOf(run).durationMs]).toEqual(Array.from({ length: 8 }, () => 100));
  });

  it("has one layout while nothing of it changes, and another once it does", async () => {
    const run = started();
    const first = columnsOf(run);
    iterate(run, 1, () => 30);
    run.take("a1", "node1", report(1), { has: () => true });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const layout = (): Promise<string> =>
      until(() => {
        const now = columnsOf(run).layout;
        return now !== first.layout && now;
      }, "another layout");
    expect(columnsOf(run).layout).toBe(first.layout);
    expect(columnsOf(started()).layout).toBe(first.layout);
    run.take(
      "a1",
      "node1",
      report(1, () => 7),
      { has: () => true },
    );
    expect(await layout()).not.toBe(first.layout);
    expect(columnsOf(run).gpu[7]).toBe(7);
  });

  it("names groups, and says of whom the agent is away", () => {
    const run = started();
    run.ranks.get(2)!.state = "stopped";
    const { groups, state } = columnsOf(run, new Set(["a0"]));
    expect(groups[0]).toEqual({
      name: "PIPELINE_PARALLEL_0",
      role: "PIPELINE_PARALLEL",
      ranks: [0, 4],
    });
    expect(state.slice(1, 6)).toEqual(["running", "stopped", "running", "silent", "silent"]);
  });
});
