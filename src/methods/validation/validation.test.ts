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
/** Of a machine that others use, too: repeats of one product differ by half. */
const MUCH_NOISE = 0.5;

/** A ring and a tree over all ranks; `perHost` of them on a machine, where transfers are ten times as fast. */
function tested(
  random: Random,
  ranks: number,
  faults: Faults,
  perHost = 1,
  noise = NOISE,
  hasRails = false,
): ValidationReport[] {
  const host = (rank: number): string => `h${Math.floor(rank / perHost)}`;
  const repeats = (ms: number): number[] =>
    Array.from({ length: 3 }, () => ms * (1 + noise * (random() - 0.5)));
  const transfer = (topology: "ring" | "tree" | "rail", from: number, to: number, mb: number) => {
    const key = from < to ? `${from}-${to}` : `${to}-${from}`;
    const isInside = host(from) === host(to);
    // What stays inside a machine passes no NIC.
    const nics = hasRails && isInside ? [] : [from, to].map((end) => faults.nic?.[end] ?? 1);
    const slow = Math.max(faults.link?.[key] ?? 1, ...nics);
    const ms = (mb / 10) * (isInside ? 0.1 : 1) * slow;
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
      ...(hasRails ? [transfer("rail", (rank + ranks - perHost) % ranks, rank, mb)] : []),
      ...(hasRails ? [] : [2 * rank + 1, 2 * rank + 2])
        .filter((child) => child < ranks)
        .map((child) => transfer("tree", child, rank, mb)),
    ]),
  }));
}

function findings(validations: readonly ValidationReport[]): NewFinding[] {
  const job = { validations } as unknown as Job;
  return [...(validationTests.run(job, ENV) as Iterable<NewFinding>)];
}

function found(validations: readonly ValidationReport[]) {
  return findings(validations).flatMap(({ accuses }) =>
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

  it("accuse no GPU of what noise does to one of its tests", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      const reports = tested(random, 8 + randomInt(random, 56), {}, 1, MUCH_NOISE);
      const gpus = found(reports).filter(({ type }) => type === "gpu");
      expect(gpus, `seed ${seed}`).toEqual([]);
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

  it("name a NIC by what goes between machines, and a link inside one by itself", () => {
    for (const seed of seeds) {
      const random = seeded(seed);
      const [machines, perHost] = [3 + randomInt(random, 5), pick(random, [2, 4])];
      const ranks = machines * perHost;
      const slow = randomInt(random, ranks);
      const nic = found(tested(random, ranks, { nic: { [slow]: 3 } }, perHost, NOISE, true));
      expect(nic, `seed ${seed}`).toEqual([{ type: "nic", ranks: [slow], cause: "network-slow" }]);
      const from = perHost * randomInt(random, machines);
      const link = { [`${from}-${from + 1}`]: 3 };
      const inside = found(tested(random, ranks, { link }, perHost, NOISE, true));
      expect(inside, `seed ${seed}`).toEqual([
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

  it("say of two that differ, and of two halves, that they do, and accuse neither", () => {
    const half = { 0: 1.5, 2: 1.5, 4: 1.5 };
    for (const reports of [
      tested(seeded(1), 2, { gpu: { 1: 1.5 } }),
      tested(seeded(1), 6, { gpu: half }),
    ]) {
      const [one, ...more] = findings(reports);
      expect(more).toEqual([]);
      expect(one!.accuses).toEqual([]);
      expect(one!.says).toMatch(
        /they differ by (4[6-9]|5[0-4]) %, and it is unknown which of them is slow/,
      );
    }
    const [one] = findings(tested(seeded(1), 6, { gpu: half }));
    expect(one!.data).toMatchObject({ fast: [1, 3, 5], slow: [0, 2, 4] });
  });

  it("say of transfers that differ by halves that they do", () => {
    const link = { "0-1": 4, "2-3": 4, "4-5": 4, "0-2": 4, "1-3": 4 };
    const said = findings(tested(seeded(2), 6, { link })).map(({ says }) => says);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/3 of 6 slower .*and it is unknown which of them is slow/);
  });

  it("say plainly that all were tested and are alike", () => {
    const [one] = findings(tested(seeded(1), 8, {}));
    expect(one!.says).toMatch(/^8 GPUs and 14 links were tested and are alike: none stands out/);
    const alone = tested(seeded(1), 1, {}).map((report) => ({ ...report, transfers: [] }));
    expect(findings(alone)[0]!.says).toMatch(/^1 GPU was tested, and there is nothing to compare/);
  });

  it("name a GPU that is slow at one type of number with less weight", () => {
    const reports = tested(seeded(1), 8, {}).map((report) =>
      report.rank === 5
        ? {
            ...report,
            gemm: report.gemm.map((test) =>
              test.dtype === "bfloat16" ? { ...test, ms: test.ms.map((ms) => 1.5 * ms) } : test,
            ),
          }
        : report,
    );
    const [one, ...more] = findings(reports);
    expect(more).toEqual([]);
    expect(one!.accuses).toMatchObject([{ type: "gpu", ranks: [5], weight: 0.5 }]);
    expect(one!.says).toMatch(/rank 5's GPU on h5 .* in bfloat16/);
  });

  describe("where a rank left no report", () => {
    const without = (slow: number, perHost: number, faults: Faults): NewFinding[] => {
      const group = Array.from({ length: 8 }, (_, rank) => rank);
      const all = tested(seeded(4), 8, faults, perHost).map((report) => ({ ...report, group }));
      return findings(all.filter(({ rank }) => rank !== slow));
    };

    it("say so", () => {
      const [one] = without(5, 1, {});
      expect(one!.data).toMatchObject({ missing: [5] });
      expect(one!.lacks).toEqual([
        expect.stringMatching(/^rank 5 took part and left no test report/),
      ]);
      expect(findings(tested(seeded(4), 8, {}))[0]!.lacks).toBeUndefined();
    });

    it("compare its transfers with others between machines", () => {
      const [one] = without(5, 1, { nic: { 5: 5 } });
      expect(one!.accuses).toMatchObject([{ type: "nic", ranks: [5], weight: 0.9 }]);
      expect(one!.at).toEqual([{ file: "2.json" }, { file: "6.json" }]);
    });

    it("compare them with all where no others are, which is less sure", () => {
      const [one] = without(5, 8, { nic: { 5: 5 } });
      expect(one!.accuses).toMatchObject([{ type: "nic", ranks: [5], weight: 0.5 }]);
      expect(without(5, 8, {}).flatMap(({ accuses }) => accuses)).toEqual([]);
    });

    it("do not take its way inside a machine for the norm between machines", () => {
      // Ranks 2 and 3 share a machine: without the report of 3 its fast transfer stands among slow ones.
      const [one, ...more] = without(3, 2, { link: { "5-6": 2 } });
      expect(more).toEqual([]);
      expect(one!.accuses).toMatchObject([{ type: "link", ranks: [5, 6] }]);
    });
  });

  it("count the last answer of a rank", () => {
    const first = tested(seeded(1), 4, { gpu: { 2: 2 } });
    const later = tested(seeded(2), 4, {}).map((report) => ({ ...report, timeMs: 2000 }));
    expect(found([...later, ...first])).toEqual([]);
  });
});

describe("a link that is slow now and then, tested after several iterations", () => {
  /** One report of a rank: transfers of all rounds. */
  function inRounds(faults: readonly Faults[]): ValidationReport[] {
    const rounds = faults.map((each, k) => tested(seeded(40 + k), 8, each));
    return rounds[0]!.map((report, rank) => ({
      ...report,
      transfers: rounds.flatMap((reports, k) =>
        reports[rank]!.transfers.map((one) => ({ ...one, iteration: 100 + k })),
      ),
    }));
  }
  const found = (faults: readonly Faults[]): NewFinding[] => [
    ...(validationTests.run(
      { validations: inRounds(faults) } as Partial<Job> as Job,
      ENV,
    ) as Iterable<NewFinding>),
  ];

  it("is named by the round in which it was slow", () => {
    const [first, ...others] = found([{}, {}, { link: { "2-3": 9 } }, {}, {}]);
    expect(others).toEqual([]);
    expect(first!.accuses[0]).toMatchObject({ type: "link", ranks: [2, 3] });
    expect(first!.says).toContain("in 1 of 5 tests");
  });

  it("is named beside a hiccup of another, which is not", () => {
    const rounds = [{ link: { "2-3": 9 } }, {}, { link: { "5-6": 2 } }, { link: { "2-3": 9 } }];
    expect(found(rounds).flatMap(({ accuses }) => accuses.map(({ ranks }) => ranks))).toEqual([
      [2, 3],
    ]);
  });

  it("is nobody where no round shows one", () => {
    expect(found([{}, {}, {}]).flatMap(({ accuses }) => accuses)).toEqual([]);
  });
});
