/** What a hang looks like: who has issued, who has started, who has ended, and who is not touched at all. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jobs, operators, programOf, run, type Run } from "../../../test/support/simulate/jobs.ts";
import { parseFault } from "./fault-spec.ts";
import * as P from "./program.ts";
import { completeSpec } from "./spec.ts";
import { runs } from "../../../test/support/cases.ts";

const SEED = 99;
const cases = fc.record({ spec: jobs, place: fc.nat(1000) });

function hangs(words: (rank: number) => string, check: (faulty: Run, rank: number) => void): void {
  fc.assert(
    fc.property(cases, ({ spec, place }) => {
      const rank = place % spec.gpus;
      const faulty = run({ ...spec, faults: [parseFault(`${words(rank)}:from=2`)] });
      const healthy = run(spec);
      expect(faulty.kept.map((kept) => kept.iteration)).toEqual([1, 2]);
      expect(faulty.kept[0]).toEqual(healthy.kept[0]);
      expect(faulty.kept[1]!.endNs).toBe(Infinity);
      nothingBefore(faulty, healthy);
      check(faulty, rank);
    }),
    { seed: SEED, numRuns: runs(4, 12) },
  );
}

/** Until the first operator that never ends would have ended, all is as in the healthy run. */
function nothingBefore(faulty: Run, healthy: Run): void {
  const [bad, good] = [faulty.kept[1]!, healthy.kept[1]!];
  let untilNs = Infinity;
  good.start.forEach((ops, rank) =>
    ops.forEach((ns, op) => {
      if (bad.end[rank]![op] === Infinity) untilNs = Math.min(untilNs, ns);
    }),
  );
  good.end.forEach((ops, rank) =>
    ops.forEach((ns, op) => {
      if (ns <= untilNs && bad.end[rank]![op] !== ns) expect.fail(`rank ${rank}, op ${op}`);
    }),
  );
}

/** Nobody ends what a member never started, and nobody starts what comes after an endless operator. */
function downstreamNeverEnds(faulty: Run): void {
  const { start, end } = faulty.kept[1]!;
  for (const parts of operators(faulty)) {
    const never = parts.some(({ rank, op }) => start[rank]![op] === Infinity);
    for (const { rank, op } of parts)
      if (never && end[rank]![op] !== Infinity) expect.fail(`rank ${rank} ends op ${op}`);
  }
  for (let rank = 0; rank < faulty.spec.gpus; rank++) {
    const { async, count } = programOf(faulty, rank);
    const stuck = end[rank]!.findIndex((ns, op) => ns === Infinity && async[op] === 0);
    expect(stuck).toBeGreaterThanOrEqual(0);
    for (let op = stuck + 1; op < count; op++)
      if (start[rank]![op] !== Infinity) expect.fail(`rank ${rank} starts op ${op}`);
  }
}

describe("a hang", () => {
  test("of a GPU: it issues everything and starts nothing from one operator on", () => {
    hangs(
      (rank) => `gpu-hang:rank=${rank}`,
      (faulty, rank) => {
        const { issue, start } = faulty.kept[1]!;
        expect(issue.flat().every(Number.isFinite)).toBe(true);
        const from = start[rank]!.indexOf(Infinity);
        expect(from).toBeGreaterThanOrEqual(Math.floor(start[rank]!.length / 4));
        expect(start[rank]!.slice(from).every((ns) => ns === Infinity)).toBe(true);
        downstreamNeverEnds(faulty);
      },
    );
  });

  test.each(["process-gone", "process-stopped", "cpu-stall:severity=inf", "gpu-error"])(
    "of a process (%s): it issues nothing from one operator on, all others issue everything",
    (words) => {
      hangs(
        (rank) => `${words}:rank=${rank}`,
        (faulty, rank) => {
          const { issue, start } = faulty.kept[1]!;
          const from = issue[rank]!.indexOf(Infinity);
          expect(from).toBeGreaterThanOrEqual(Math.floor(issue[rank]!.length / 4));
          expect(issue[rank]!.slice(from).every((ns) => ns === Infinity)).toBe(true);
          expect(start[rank]![from]).toBe(Infinity);
          issue.forEach((ops, other) => {
            if (other !== rank) expect(ops.every(Number.isFinite)).toBe(true);
          });
          downstreamNeverEnds(faulty);
        },
      );
    },
  );

  test("of a link: both sides issue and start, none ends", () => {
    const spec = completeSpec({ gpus: 16, tp: 4, pp: 2, dp: 2, microBatches: 4, iterations: 3 });
    for (const [link, role] of [
      ["5-6", P.TP],
      ["1-5", P.DP],
      ["2-10", P.PP],
    ] as const) {
      const ranks = link.split("-").map(Number);
      const faulty = run({ ...spec, faults: [parseFault(`network-hang:link=${link}:from=2`)] });
      const { issue, start, end } = faulty.kept[1]!;
      expect(issue.flat().every(Number.isFinite)).toBe(true);
      const stuck = [...operators(faulty)].filter(
        (parts) =>
          parts.every(({ rank, op }) => Number.isFinite(start[rank]![op]!)) &&
          parts.every(({ rank, op }) => end[rank]![op] === Infinity),
      );
      // Only what passes the link is stuck by itself; all else waits for one of these.
      expect(stuck.length).toBeGreaterThan(0);
      for (const parts of stuck) {
        const { rank, op } = parts.at(-1)!;
        expect(programOf(faulty, rank).role[op]).toBe(role);
        expect(ranks.every((end) => parts.some((part) => part.rank === end))).toBe(true);
      }
      nothingBefore(faulty, run(spec));
      downstreamNeverEnds(faulty);
    }
  });

  test.each(["rank=3", "machine=node001", "switch=leaf1", "switch=spine0", "link=node000-leaf3"])(
    "of the network at %s ends the job",
    (place) => {
      const spec = completeSpec({ gpus: 16, machinesPerLeaf: 1, iterations: 3 });
      const { kept } = run({ ...spec, faults: [parseFault(`network-hang:${place}:from=2`)] });
      expect(kept).toHaveLength(2);
      expect(kept[1]!.endNs).toBe(Infinity);
      expect(kept[1]!.issue.flat().every(Number.isFinite)).toBe(true);
    },
  );
});
