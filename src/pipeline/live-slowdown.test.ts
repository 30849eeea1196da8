import { describe, expect, it } from "vitest";
import { liveJob } from "../ingest/live-job.ts";
import type { LiveCulprit } from "../model/live-judgement.ts";
import type { Verdict } from "../model/verdict.ts";
import type { WireTimes } from "../model/wire-times.ts";
import { diagnoseCulprit, type SlowDownFacts } from "./live-slowdown.ts";

const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];
const SLOW_FROM = 41;

const live = liveJob(
  "job",
  8,
  RANKS.map((rank) => ({
    rank,
    machine: `node00${rank >> 1}`,
    gpu: rank % 2,
    pid: null,
    nic: `mlx${rank}`,
    leaf: null,
    stage: null,
    groups: [
      {
        key: "c-1",
        desc: "DATA_PARALLEL",
        groupRank: rank,
        size: 8,
        ranks: RANKS,
      },
    ],
  })),
  null,
);

const CULPRIT: LiveCulprit = {
  id: 1,
  type: "rank",
  ranks: [5],
  cause: "gpu-slow",
  probability: 0.96,
  causeProbability: 0.95,
  shape: "lasting",
  sinceMs: 1_800_000_040_000,
  compared: {
    group: "DATA_PARALLEL",
    iterations: 12,
    leadMs: [4, 405],
    chanceMs: 6,
    ranks: RANKS.map((rank) => ({
      rank,
      insideMs: [200, rank === 5 ? 195 : 600],
      ownMs: [800, rank === 5 ? 1205 : 800],
    })),
  },
};

function facts(culprit: LiveCulprit | null, change: Partial<SlowDownFacts> = {}): SlowDownFacts {
  const numbers = Array.from({ length: 52 }, (_, i) => i + 1);
  const durations = numbers.map((number) => (number >= SLOW_FROM ? 1400 : 1000));
  const series = {
    source: "agents of job",
    file: "agents of job",
    rank: null,
    basis: "reported" as const,
    iteration: Float64Array.from(numbers),
    durationMs: Float64Array.from(durations),
    endMs: Float64Array.from(numbers, (number) => 1.8e12 + 1000 * number),
    line: new Int32Array(52),
    batch: new Float64Array(52).fill(NaN),
    between: new Uint8Array(52),
  };
  return {
    live,
    reachable: RANKS,
    culprit,
    stretch: {
      isPaced: true,
      slowFrom: SLOW_FROM,
      fromMs: 1_800_000_040_000,
      beforeMs: 1000,
      afterMs: 1400,
      last: 52,
      source: "agents of job",
    },
    accused: new Set(),
    usualMs: 1000,
    series,
    incidents: new Map(),
    wires: () => Promise.reject(new Error("nobody asks")),
    ...change,
  };
}

const accused = ({ suspects }: Verdict): string[] =>
  suspects.map(({ type, ranks, cause }) => `${type} ${ranks.join()} ${cause}`);

/** A ring over all ranks; what goes from rank 3 to rank 4 stays on the wire in the slow iterations. */
function wiresOf(slowMs: number): SlowDownFacts["wires"] {
  const iterations = Float64Array.from({ length: 24 }, (_, i) => 29 + i);
  const isSlow = (number: number): boolean => number >= SLOW_FROM;
  const times: WireTimes = {
    iterations,
    links: RANKS.map((from) => ({
      from,
      to: (from + 1) % 8,
      ms: iterations.map((number) => (from === 3 && isSlow(number) ? slowMs : 50)),
    })),
  };
  const durationOf = (number: number): number => (isSlow(number) ? 1400 : 1000);
  return () => Promise.resolve({ times, slow: { isSlow, durationOf, isLasting: true } });
}

describe("diagnoseCulprit", () => {
  it("says who waits less than the others, since when, and what it costs", async () => {
    const { verdict, tests } = await diagnoseCulprit(facts(CULPRIT));
    expect(accused(verdict)).toEqual(["rank 5 gpu-slow"]);
    expect(verdict.findings.map(({ says }) => says)).toMatchInlineSnapshot(`
      [
        "iterations take 1.40 times as long since iteration 41 (1.00 s → 1.40 s)",
        "rank 5 waits 405 ms less in each iteration than the 7 others of DATA_PARALLEL (before: about as long as they); by chance such leads are 6 ms",
      ]
    `);
    expect(verdict.when.iteration).toBe(SLOW_FROM);
    expect(verdict.confidence).toBeGreaterThan(0.9);
    expect(verdict.victims).toEqual([0, 1, 2, 3, 4, 6, 7]);
    expect(tests).toBeNull();
  });

  it("leaves the cause open where the judge does, and has the group test itself", async () => {
    const { verdict, tests } = await diagnoseCulprit(facts({ ...CULPRIT, cause: null }));
    expect(accused(verdict)).toEqual(["rank 5 gpu-slow", "rank 5 cpu-stall"]);
    for (const { score } of verdict.suspects) expect(score).toBeLessThan(0.8);
    expect(tests?.groups).toEqual([RANKS]);
  });

  it("does not list among those that only wait whom another incident accuses", async () => {
    const { verdict } = await diagnoseCulprit(facts(CULPRIT, { accused: new Set([2]) }));
    expect(verdict.victims).toEqual([0, 1, 3, 4, 6, 7]);
  });

  it("accuses a whole machine as one", async () => {
    const culprit = { ...CULPRIT, type: "machine" as const, ranks: [4, 5] };
    const { verdict } = await diagnoseCulprit(facts(culprit));
    expect(verdict.suspects).toMatchObject([
      { type: "machine", ranks: [4, 5], machine: "node002" },
    ]);
  });

  it("names the link of a slow group on whose wire sends stay", async () => {
    const culprit: LiveCulprit = { ...CULPRIT, type: "wire", ranks: RANKS, cause: "network-slow" };
    const slow = await diagnoseCulprit(facts(culprit, { wires: wiresOf(450) }));
    expect(accused(slow.verdict)).toEqual(["link 3,4 network-slow"]);
    expect(slow.tests).toBeNull();
    const unknown = await diagnoseCulprit(facts(culprit, { wires: wiresOf(60) }));
    expect(accused(unknown.verdict)).toEqual([`nic ${RANKS.join()} network-slow`]);
    expect(unknown.tests?.groups[0]).toEqual(RANKS);
  });

  it("clears a link on whose wire nothing stays longer than before", async () => {
    const culprit: LiveCulprit = { ...CULPRIT, type: "wire", ranks: [3, 4], cause: "network-slow" };
    const { verdict } = await diagnoseCulprit(facts(culprit, { wires: wiresOf(55) }));
    expect(accused(verdict)).toEqual([]);
  });

  it("names nobody of a slowdown that nobody leads, but the link that explains it", async () => {
    const culprit: LiveCulprit = { ...CULPRIT, type: "all", ranks: [], cause: null };
    const nobody = await diagnoseCulprit(facts(culprit, { wires: wiresOf(55) }));
    expect(nobody.verdict).toMatchObject({ kind: "fail-slow", suspects: [] });
    const slow = await diagnoseCulprit(facts(culprit, { wires: wiresOf(450) }));
    expect(accused(slow.verdict)).toEqual(["link 3,4 network-slow"]);
  });

  it("says that iterations take longer where nothing is judged", async () => {
    const { verdict } = await diagnoseCulprit(facts(null));
    expect(verdict).toMatchObject({ kind: "fail-slow", suspects: [] });
    expect(verdict.summary).toMatch(/^Iterations take 1.40 times as long since iteration 41/);
  });

  it("does not say by how much before iterations tell", async () => {
    const unpaced = { ...facts(CULPRIT).stretch, isPaced: false, afterMs: 1000 };
    const { verdict } = await diagnoseCulprit(facts(CULPRIT, { stretch: unpaced }));
    expect(accused(verdict)).toEqual(["rank 5 gpu-slow"]);
    expect(verdict.summary).not.toMatch(/times as long/);
  });
});
