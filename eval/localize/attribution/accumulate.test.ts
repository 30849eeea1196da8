import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  accumulate,
  TABLE_1,
  topologyDecay,
  type DeviceScore,
  type Irregularity,
} from "./accumulate.ts";
import { devicesOf, type RankPlace } from "./devices.ts";

/** One GPU a machine, `perLeaf` machines under each leaf. */
const places = (leaves: readonly string[], perLeaf: number): RankPlace[] =>
  leaves.flatMap((leaf, l) =>
    Array.from({ length: perLeaf }, (_, m) => ({
      machine: `node${l * perLeaf + m}`,
      nic: `node${l * perLeaf + m}/mlx5_0`,
      leaf,
    })),
  );
/** K = 2, "given the low probability of concurrent failures in multiple devices" (§5.1). */
const topTwo = (scores: readonly DeviceScore[]): readonly DeviceScore[] => scores.slice(0, 2);
const compute = (rank: number, side: "gpu" | "cpu" | null = "gpu", rate = 1): Irregularity => ({
  cause: "compute",
  ranks: [rank],
  rate,
  side,
});
const network = (ranks: readonly number[], rate = 1): Irregularity => ({
  cause: "network",
  ranks,
  rate,
});
const names = (scores: readonly DeviceScore[]): string[] => scores.map(({ device }) => device.name);

describe("the decay of switches", () => {
  it("is exactly one for one NIC and falls with every further one", () => {
    expect(topologyDecay(1)).toBe(1);
    expect(topologyDecay(0)).toBe(1);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), (nics) => {
        expect(topologyDecay(nics + 1)).toBeLessThan(topologyDecay(nics));
        expect(topologyDecay(nics)).toBeGreaterThan(0);
      }),
    );
  });
});

describe("figure 20: rail switches A and B slow, spine C above them", () => {
  const devices = devicesOf(places(["A", "B", "D", "E", "F", "G"], 4), { spines: ["C"] });
  // Every NIC of A and of B is irregular in what it sends upwards, to each of the other leaves.
  const irregularities = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((from) =>
    [8, 12, 16, 20].map((leaf) => network([from, leaf + (from % 4)], 0.9)),
  );

  it("accuses the spine without decay", () => {
    for (const prior of [TABLE_1, null])
      expect(names(accumulate(irregularities, devices, { prior, decay: false }))[0]).toBe("C");
  });

  it("accuses both rail switches, and not the spine, with decay", () => {
    for (const prior of [TABLE_1, null]) {
      const top = topTwo(accumulate(irregularities, devices, { prior }));
      expect(names(top).sort()).toEqual(["A", "B"]);
    }
  });
});

describe("accumulation", () => {
  const devices = devicesOf(places(["A", "B"], 4));

  it("names the GPU whose computing was irregular", () => {
    const scores = accumulate([compute(3), compute(3), compute(5)], devices);
    expect(names(topTwo(scores))).toEqual(["gpu of rank 3", "gpu of rank 5"]);
    expect(scores[0]!.irregularities).toBe(2);
  });

  it("names the CPU where the side is known, and lets the prior choose where it is not", () => {
    expect(names(accumulate([compute(3, "cpu")], devices))).toEqual(["cpu of node3"]);
    expect(names(accumulate([compute(3, null)], devices))).toEqual([
      "gpu of rank 3",
      "cpu of node3",
    ]);
  });

  it("names the CPU when several GPUs of its machine are irregular and the side is not known", () => {
    const machine = devicesOf(
      Array.from({ length: 4 }, () => ({ machine: "node0", nic: null, leaf: null })),
    );
    expect(names(accumulate([compute(0, null), compute(1, null)], machine))[0]).toBe(
      "cpu of node0",
    );
  });

  it("names the NIC that irregular links have in common", () => {
    const scores = accumulate([network([0, 1]), network([0, 2]), network([0, 5])], devices);
    expect(names(scores)[0]).toBe("nic node0/mlx5_0");
  });

  it("prefers a NIC to its cable, which carry the same, by the prior alone", () => {
    const irregularities = [network([0, 1]), network([0, 2])];
    const of = (prior: typeof TABLE_1 | null) => {
      const scores = accumulate(irregularities, devices, { prior });
      return ["nic node0/mlx5_0", "link node0/mlx5_0–A"].map(
        (name) => scores.find(({ device }) => device.name === name)!.score,
      );
    };
    expect(of(null)[0]).toBe(of(null)[1]);
    expect(of(TABLE_1)[0]).toBeGreaterThan(of(TABLE_1)[1]!);
  });

  it("is the paper's formula", () => {
    const scores = accumulate([network([0, 1], 0.5), compute(3, "gpu", 0.8)], devices, {
      alpha: 2,
      decay: false,
    });
    // Two NICs, two cables and a leaf with 0.5 each, a GPU with 0.8.
    const total = 5 * 0.5 + 0.8;
    const score = (name: string) => scores.find(({ device }) => device.name === name)!.score;
    expect(score("gpu of rank 3")).toBeCloseTo((0.8 + 2 * 0.587) / (total + 2), 12);
    expect(score("A")).toBeCloseTo((0.5 + 2 * 0.048) / (total + 2), 12);
  });

  it("takes no notice of irregularities that explain nothing", () => {
    expect(accumulate([compute(1, "gpu", 0), compute(2, "gpu", NaN)], devices)).toEqual([]);
    expect(accumulate([], devices)).toEqual([]);
  });

  const some = fc.array(
    fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 7 }), fc.double({ min: 0.01, max: 1, noNaN: true })),
      fc.tuple(
        fc.uniqueArray(fc.integer({ min: 0, max: 7 }), { minLength: 2, maxLength: 5 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
      ),
    ),
    { minLength: 1, maxLength: 12 },
  );
  const made = (given: readonly (readonly [number | readonly number[], number])[]) =>
    given.map(([who, rate]) =>
      typeof who === "number" ? compute(who, "gpu", rate) : network(who, rate),
    );

  it("is a probability with a prior, in falling order, and a device at most once", () => {
    fc.assert(
      fc.property(some, (given) => {
        const scores = accumulate(made(given), devices);
        expect(new Set(names(scores)).size).toBe(scores.length);
        scores.forEach(({ score }, i) => {
          expect(score).toBeGreaterThan(0);
          expect(score).toBeLessThan(1);
          if (i > 0) expect(score).toBeLessThanOrEqual(scores[i - 1]!.score);
        });
      }),
    );
  });

  it("never makes a device less suspect by one more irregularity of its own", () => {
    fc.assert(
      fc.property(some, fc.integer({ min: 0, max: 7 }), (given, rank) => {
        const place = (all: readonly Irregularity[]): number => {
          const at = names(accumulate(all, devices)).indexOf(`gpu of rank ${rank}`);
          return at < 0 ? Infinity : at;
        };
        const before = made(given);
        expect(place([...before, compute(rank)])).toBeLessThanOrEqual(place(before));
      }),
    );
  });

  it("orders as the plain sum does once the prior weighs nothing", () => {
    fc.assert(
      fc.property(some, (given) => {
        const all = made(given);
        const sums = new Map(
          accumulate(all, devices, { prior: null }).map(({ device, score }) => [
            device.name,
            score,
          ]),
        );
        const weightless = names(accumulate(all, devices, { alpha: 0 })).map((name) =>
          sums.get(name)!,
        );
        expect(weightless.length).toBe(sums.size);
        // Sums that differ by their rounding alone may change places.
        weightless.forEach((sum, i) => {
          if (i > 0) expect(sum).toBeLessThanOrEqual(weightless[i - 1]! * (1 + 1e-9));
        });
      }),
    );
  });
});
