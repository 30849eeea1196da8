import { describe, expect, test } from "vitest";
import { COMPLETED, STARTED } from "../../../src/model/operators.ts";
import { FAULT_KINDS } from "./faults.ts";
import type { HangCase, HangOptions } from "./hang-case.ts";
import { makeHangCase, tryHangCase, writeCase } from "./hang-case.ts";
import { MISMATCH_VARIANTS } from "./mismatch.ts";
import { randomHangCase } from "./random-case.ts";
import { notCome, openWaits } from "./waits.ts";
import { runs } from "../../../test/support/cases.ts";

const SEEDS = [...Array(runs(6, 12)).keys()];
const base = { tp: 2, pp: 2, dp: 2 } as const;
const make = (options: Partial<HangOptions>): HangCase =>
  makeHangCase({ ...base, seed: 1, fault: "cpu-stall", ...options });

/** Who is neither guilty nor waits for anybody: must be nobody. */
function innocentSinks({ execution, truth }: HangCase): number[] {
  const waits = openWaits(execution);
  return [...execution.runs.keys()].filter((rank) => {
    const waitsForSomebody = (waits[rank] ?? []).some(
      ({ meeting }) => meeting.dead || notCome(meeting).some((other) => other !== rank),
    );
    return !truth.ranks.includes(rank) && !waitsForSomebody;
  });
}

describe("a hang case", () => {
  for (const fault of FAULT_KINDS)
    test(`of ${fault} leaves no innocent rank that waits for nobody`, () => {
      for (const seed of SEEDS) {
        const hang = make({ fault, seed, culprits: 1 + (seed % 2) });
        expect(hang.truth.cause).toBe(fault);
        expect(hang.truth.ranks.length).toBeGreaterThan(0);
        expect(innocentSinks(hang)).toEqual([]);
      }
    });

  test("of a stalled CPU: the culprit has nothing left to do and issued less than its peers", () => {
    for (const seed of SEEDS) {
      const hang = make({ seed });
      for (const rank of hang.truth.ranks)
        expect(hang.ranks[rank]?.state.every((state) => state === COMPLETED)).toBe(true);
    }
  });

  test("of a broken GPU: its peers completed more with it than it knows", () => {
    for (const seed of SEEDS) {
      const { truth, ranks, groups } = make({ fault: "gpu-error", seed });
      for (const rank of truth.ranks) {
        const lags = [...(ranks[rank]?.status ?? [])].some(
          ([group, own]) =>
            groups[group]?.role !== "pp" &&
            groups[group]?.ranks.some(
              (peer) => (ranks[peer]?.status.get(group)?.completed ?? 0) > own.completed,
            ),
        );
        expect(lags).toBe(true);
      }
    }
  });

  test("of the network: every member has started the same call and none completed it", () => {
    for (const seed of SEEDS) {
      const { truth, ranks } = make({ fault: "network-hang", seed });
      for (const rank of truth.ranks) expect(ranks[rank]?.state).toContain(STARTED);
    }
  });

  test("of a lost process: it leaves no file, everybody else does", () => {
    for (const fault of ["process-gone", "process-stopped"] as const) {
      const hang = make({ fault, culprits: 2, seed: 4 });
      const missing = [...hang.ranks.keys()].filter((rank) => !hang.files[rank]?.written);
      expect(missing).toEqual(hang.truth.ranks);
      expect(writeCase(hang)).toHaveLength(6);
    }
  });

  for (const variant of MISMATCH_VARIANTS)
    test(`of a mismatch by ${variant}: exactly the culprits leave the common program`, () => {
      for (const seed of SEEDS.slice(0, 6)) {
        const program = { world: "all_reduce" } as const;
        const hang = make({ fault: "collective-mismatch", variant, seed, program });
        const wanted = makeHangCase({ ...base, seed, fault: "cpu-stall", program });
        const calls = (of: HangCase, rank: number): string[] =>
          (of.execution.runs[rank]?.ops ?? []).map((op) =>
            JSON.stringify([op.group, op.kind, op.shape, op.dtype]),
          );
        const changed = [...hang.ranks.keys()].filter(
          (rank) => calls(hang, rank).join() !== calls(wanted, rank).join(),
        );
        expect(changed).toEqual(hang.truth.ranks);
      }
    });

  test("of a skipped call may surface at the end of the program, as in the lab's recording", () => {
    const hang = make({ tp: 8, pp: 1, dp: 1, fault: "collective-mismatch", variant: "skip" });
    const [culprit] = hang.truth.ranks;
    const run = hang.execution.runs[culprit ?? -1];
    expect(run?.issued).toBe(run?.ops.length);
    expect(innocentSinks(hang)).toEqual([]);
  });

  test("cannot be had from a swap where no two groups share a second rank", () => {
    expect(
      tryHangCase({ ...base, seed: 1, fault: "collective-mismatch", variant: "swap" }),
    ).toBeNull();
  });

  test("is the same for the same seed, to the byte", () => {
    const draw = (seed: number): HangCase => randomHangCase(seed, { minRanks: 4, maxRanks: 32 });
    for (const seed of SEEDS) {
      const [a, b] = [draw(seed), draw(seed)];
      expect(a.truth).toEqual(b.truth);
      const again = writeCase(b);
      writeCase(a).forEach(({ name, bytes }, i) => {
        expect(again[i]?.name).toBe(name);
        expect(Buffer.compare(bytes, again[i]?.bytes ?? new Uint8Array())).toBe(0);
      });
    }
  });
});

describe("the truth of a case", () => {
  const obstacles = (options: Partial<HangOptions>): boolean[] =>
    SEEDS.map((seed) => make({ ...options, seed }).truth.decidable);

  test("is open without timing when nobody completed the call, and plain with it", () => {
    for (const fault of ["gpu-hang", "network-hang"] as const) {
      expect(obstacles({ fault })).not.toContain(false);
      expect(obstacles({ fault, nuisances: { timing: false } })).not.toContain(true);
    }
  });

  test("is plain without timing when the GPU hangs in a group of its own", () => {
    const cases = SEEDS.map((seed) =>
      make({ tp: 1, pp: 4, seed, fault: "gpu-hang", nuisances: { timing: false } }),
    );
    const alone = cases.filter(({ truth }) => truth.note.includes("TENSOR_PARALLEL"));
    expect(alone.length).toBeGreaterThan(0);
    for (const { truth } of alone) expect(truth.decidable).toBe(true);
  });

  test("stays plain for a stalled CPU, whatever of its dump is left", () => {
    for (const nuisances of [
      { timing: false },
      { onlyActive: true },
      { ringSize: 30 },
      { emptied: 4 },
    ])
      expect(obstacles({ nuisances })).not.toContain(false);
  });

  test("of a mismatch between two needs history, or others that made the same call", () => {
    const two = { tp: 2, pp: 2, dp: 1, fault: "collective-mismatch", variant: "type" } as const;
    expect(obstacles(two)).not.toContain(false);
    expect(obstacles({ ...two, nuisances: { onlyActive: true } })).not.toContain(true);
    const four = { ...two, tp: 4, pp: 1 } as const;
    expect(obstacles({ ...four, nuisances: { onlyActive: true } })).not.toContain(false);
  });

  test("of a lost process is open when an innocent that is waited for lost its dump too", () => {
    const all = SEEDS.map((seed) =>
      make({ seed, fault: "process-gone", nuisances: { missing: 2 } }),
    );
    expect(all.some(({ truth }) => !truth.decidable)).toBe(true);
    expect(obstacles({ fault: "process-gone" })).not.toContain(false);
  });
});

test("random cases cover every fault and are decidable for the most part", () => {
  const count = runs(60, 150);
  const cases = Array.from({ length: count }, (_, seed) =>
    randomHangCase(seed, { minRanks: 4, maxRanks: 32 }),
  );
  for (const hang of cases) {
    expect(innocentSinks(hang)).toEqual([]);
    expect(hang.truth.decidable).toBe(hang.truth.undecidableBecause === "");
    expect(hang.ranks.length).toBeGreaterThanOrEqual(4);
    expect(hang.ranks.length).toBeLessThanOrEqual(32);
    expect(writeCase(hang).length).toBeGreaterThan(0);
  }
  expect(new Set(cases.map((hang) => hang.truth.cause)).size).toBe(FAULT_KINDS.length);
  expect(cases.filter((hang) => hang.truth.decidable).length).toBeGreaterThan(0.73 * count);
});
