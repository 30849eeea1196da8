import { describe, expect, it } from "vitest";
import { pick, randomInt, seeded, type Random } from "../../base/random.ts";
import type { NewFinding } from "../../model/finding.ts";
import type { Env, Job } from "../../model/job.ts";
import type { ValidationReport } from "../../model/validation.ts";
import { validationTests } from "./validation-method.ts";

const ENV: Env = { signal: new AbortController().signal, progress: () => undefined };

interface Faults {
  /** Rank → how many times as long its products take. */
  readonly gpu?: Readonly<Record<number, number>>;
  /** "1-2" → how many times as long transfers between the two take. */
  readonly link?: Readonly<Record<string, number>>;
  readonly nic?: Readonly<Record<number, number>>;
}

const NOISE = 0.03;

/** A ring and a tree over all ranks; `perHost` of them on a machine, where transfers are ten times as fast. */
function tested(random: Random, ranks: number, faults: Faults, perHost = 1): ValidationReport[] {
  const host = (rank: number): string => `h${Math.floor(rank / perHost)}`;
  const repeats = (ms: number): number[] =>
    Array.from({ length: 3 }, () => ms * (1 + NOISE * (random() - 0.5)));
  const transfer = (topology: "ring" | "tree", from: number, to: number, mb: number) => {
    const key = from < to ? `${from}-${to}` : `${to}-${from}`;
    const slow = Math.max(faults.link?.[key] ?? 1, faults.nic?.[from] ?? 1, faults.nic?.[to] ?? 1);
    const ms = (mb / 10) * (host(from) === host(to) ? 0.1 : 1) * slow;
    return { topology, pass: 0, from, to, bytes: mb << 20, ms: repeats(ms) };
  };
  return Array.from({ length: ranks }, (_, rank) => ({
    file: `${rank}.json`,
    rank,
    host: host(rank),
    device: "NVIDIA H200",
    iteration: 5,
    timeMs: 1000,
    group: [],
    gemm: ["bfloat16", "float32"].map((dtype, i) => ({
      dtype,
      m: 4096,
      n: 4096,
      k: 4096,
      ms: repeats((i === 0 ? 1 : 8) * (faults.gpu?.[rank] ?? 1)),
    })),
    transfers: [4, 16].flatMap((mb) => [
      transfer("ring", (rank + ranks - 1) % ranks, rank, mb),
      ...[2 * rank + 1, 2 * rank + 2]
        .filter((child) => child < ranks)
        .map((child) => transfer("tree", child, rank, mb)),
    ]),
  }));
}

function found(validations: readonly ValidationReport[]) {
  const job = { validations } as unknown as Job;
  return [...(validationTests.run(job, ENV) as Iterable<NewFinding>)].flatMap(({ accuses }) =>
    accuses.map(({ type, ranks, cause }) => ({ type, ranks, cause })),
  );
}

describe("tests of GPUs and links", () => {
  const seeds = Array.from({ length: 60 }, (_, seed) => seed);

  it("accuse nobody where all are alike", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      const ranks = 2 + randomInt(random, 14);
      const perHost = pick(random, [1, 2, 4]);
      expect(found(tested(random, ranks, {}, perHost)), `seed ${seed}`).toEqual([]);
    }
  });

  it("name a GPU that is an eighth slower or more", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      const ranks = 3 + randomInt(random, 13);
      const slow = randomInt(random, ranks);
      const faults = { gpu: { [slow]: 1.125 + random() } };
      expect(found(tested(random, ranks, faults)), `seed ${seed}`).toEqual([
        { type: "gpu", ranks: [slow], cause: "gpu-slow" },
      ]);
    }
  });

  it("name a link between two machines, and not its ends", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      const ranks = 6 + randomInt(random, 10);
      const from = randomInt(random, ranks - 1);
      const faults = { link: { [`${from}-${from + 1}`]: 1.4 + random() } };
      expect(found(tested(random, ranks, faults)), `seed ${seed}`).toEqual([
        { type: "link", ranks: [from, from + 1], cause: "network-slow" },
      ]);
    }
  });

  it("name the NIC of a rank whose transfers are slow whoever is at the other end", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      // Far from the root of the tree, where a rank has fewer links than a third of all.
      const ranks = 12 + randomInt(random, 6);
      const slow = 5 + randomInt(random, ranks - 6);
      const faults = { nic: { [slow]: 1.5 + random() } };
      expect(found(tested(random, ranks, faults)), `seed ${seed}`).toEqual([
        { type: "nic", ranks: [slow], cause: "network-slow" },
      ]);
    }
  });

  it("do not take the way inside a machine for the norm between machines", () => {
    const reports = tested(seeded(3), 8, { link: { "3-4": 2 } }, 2);
    expect(found(reports)).toEqual([{ type: "link", ranks: [3, 4], cause: "network-slow" }]);
  });

  it("say nothing of two that differ", () => {
    expect(found(tested(seeded(1), 2, { gpu: { 1: 2 } }))).toEqual([]);
  });

  it("count the last answer of a rank", () => {
    const first = tested(seeded(1), 4, { gpu: { 2: 2 } });
    const later = tested(seeded(2), 4, {}).map((report) => ({ ...report, timeMs: 2000 }));
    expect(found([...later, ...first])).toEqual([]);
  });
});
