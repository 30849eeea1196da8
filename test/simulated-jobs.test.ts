/**
 * The circle closes: a job is simulated with a fault, its files are read back, and the verdict must be
 * the truth. The simulator knows nothing of the methods, nor they of it.
 */
import { describe, expect, it } from "vitest";
import { drawDurations } from "../src/simulate/cluster/durations.ts";
import { simulate } from "../src/simulate/cluster/engine.ts";
import type { IterationTimes } from "../src/simulate/cluster/times.ts";
import { parseFault } from "../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../src/simulate/cluster/spec.ts";
import { memoryOutput } from "./support/simulate/memory-output.ts";
import { runSimulation } from "../src/simulate/run.ts";
import { diagnoseFiles } from "./support/in-memory.ts";
import { few } from "./support/cases.ts";

/** A quarter of the default job's operators an iteration. */
const SMALL = { iterations: 7, layersPerStage: 2, microBatches: 4 };
const LARGER = { layersPerStage: 4, microBatches: 8 };

function filesOf(
  shape: Partial<ClusterSpec>,
  emit: string[],
  ...faults: string[]
): Map<string, Buffer> {
  const output = memoryOutput();
  runSimulation(completeSpec({ ...SMALL, ...shape, faults: faults.map(parseFault) }), emit, output);
  return new Map(output.bytes);
}

const LAYOUTS: [string, Partial<ClusterSpec>][] = [
  ["tp 2 × dp 4 × pp 2", { gpus: 16 }],
  ["pp 4", { gpus: 32, tp: 2, pp: 4 }],
  ["pp 4, interleaved", { gpus: 32, tp: 2, pp: 4, schedule: "interleaved" }],
  ["experts", { gpus: 32, tp: 2, pp: 2, ep: 4 }],
  ["context parallel, gpipe", { gpus: 32, tp: 2, cp: 2, pp: 4, schedule: "gpipe" }],
];

const FAULTS: [string, string[], number[]][] = [
  ["gpu-hang:rank=5:from=5", ["gpu-hang"], [5]],
  ["gpu-hang:rank=1,14:from=5", ["gpu-hang"], [1, 14]],
  ["cpu-stall:rank=7:from=5:severity=inf", ["cpu-stall"], [7]],
  ["process-gone:rank=2:from=5", ["process-gone", "process-stopped"], [2]],
  ["process-stopped:rank=11:from=5", ["process-gone", "process-stopped"], [11]],
];

describe("a simulated hang", () => {
  const cases = LAYOUTS.flatMap(([layout, shape]) =>
    FAULTS.map(([fault, causes, ranks]) => [layout, fault, shape, causes, ranks] as const),
  );
  it.each(few(cases, 3))(
    "%s, %s: found from its dumps",
    async (_layout, fault, shape, causes, ranks) => {
      const files = filesOf(shape, ["flight-recorder"], fault);
      const dumps = [...files].filter(([path]) => path.startsWith("flight-recorder/"));
      const verdict = await diagnoseFiles(dumps.map(([name, bytes]) => ({ name, bytes })));
      const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
      expect([verdict.kind, blamed]).toEqual(["hang", ranks]);
      for (const { cause } of verdict.suspects) expect(causes).toContain(cause);
    },
  );

  it.each(few(LAYOUTS, 1))("%s: a dead link is the two ranks it joins", async (_layout, shape) => {
    const spec = completeSpec(shape);
    const other = 3 + spec.gpus / spec.pp;
    const files = filesOf(shape, ["flight-recorder"], `network-hang:link=3-${other}:from=5`);
    const dumps = [...files].filter(([path]) => path.startsWith("flight-recorder/"));
    const verdict = await diagnoseFiles(dumps.map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.suspects).toMatchObject([{ cause: "network-hang", ranks: [3, other] }]);
  });
});

describe("a simulated crash", () => {
  it.each([
    ["gpu-memory:rank=3:from=5", "gpu-memory", 3],
    ["user-program:rank=2:from=5", "user-program", 2],
    ["process-gone:rank=9:from=5", "process-gone", 9],
    ["gpu-error:rank=5:from=5:signature=ecc", "gpu-error", 5],
  ])("%s is found from the logs alone, with its iteration", async (fault, cause, rank) => {
    const files = filesOf({ gpus: 16 }, ["logs"], fault);
    const logs = [...files].filter(([path]) => path.startsWith("logs/"));
    const verdict = await diagnoseFiles(logs.map(([name, bytes]) => ({ name, bytes })));
    expect(verdict).toMatchObject({ kind: "crash", when: { iteration: 5 } });
    expect(verdict.suspects).toMatchObject([{ cause, ranks: [rank] }]);
  });
});

describe("a simulated slow network", () => {
  const cases: [string, string, number, Partial<ClusterSpec>][] = [
    ["node001", "severity=4", 4, { gpus: 32 }],
    ["node000", "severity=2", 5, { gpus: 32 }],
    ["node003", "severity=6", 13, { gpus: 32 }],
    ["node001", "severity=3", 12, { gpus: 64, tp: 4 }],
    ["node000", "severity=3", 22, { gpus: 32, ep: 4 }],
    ["node001", "severity=4", 4, { gpus: 32, tp: 8, ...LARGER }],
    // The other machine of the stage communicates with it in every group.
    ["node002", "severity=6", 44, { gpus: 32, tp: 2, pp: 2, iterations: 30 }],
    ["node003", "severity=6", 71, { gpus: 32, tp: 2, pp: 2, iterations: 30 }],
  ];
  it.each(few(cases, 2))("of %s (%s, seed %s) is that machine's", async (at, how, seed, shape) => {
    const fault = `network-slow:machine=${at}:from=8:${how}`;
    const files = filesOf({ iterations: 20, ...shape, seed }, ["operators", "logs"], fault);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.suspects).toMatchObject([{ type: "nic", machine: at, cause: "network-slow" }]);
    expect(verdict.suspects[0]!.ranks).toHaveLength(8);
    expect(verdict.summary).toMatch(`The network of ${at} (ranks `);
  });

  it("that only collectives of all ranks show is not put down to one machine", async () => {
    const fault = "network-slow:machine=node001:from=8:severity=6";
    const shape = { gpus: 32, tp: 1, pp: 1, seed: 21, iterations: 20 };
    const files = filesOf(shape, ["operators", "logs"], fault);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.suspects).toMatchObject([{ machine: null, cause: "network-slow" }]);
    expect(verdict.confidence).toBeLessThan(0.8);
  });

  it("of one NIC in a deep pipeline accuses no rank that waits for it", async () => {
    const fault = "network-slow:rank=9:from=8:severity=4";
    const shape = { gpus: 32, tp: 4, pp: 4, seed: 6, iterations: 20 };
    const files = filesOf(shape, ["operators", "logs"], fault);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.suspects.flatMap(({ ranks }) => ranks).filter((rank) => rank !== 9)).toEqual([]);
  });
});

describe("two simulated faults at once", () => {
  const cases: [string, string, Partial<ClusterSpec>, number[]][] = [
    [
      "gpu-slow:rank=5:from=8:severity=2",
      "network-slow:rank=20:from=8:severity=4",
      { gpus: 32, seed: 3 },
      [5, 20],
    ],
    [
      "gpu-slow:rank=3:from=8:severity=1.5",
      "dataloader:rank=6:from=8:severity=4",
      { seed: 5, ...LARGER },
      [3, 6],
    ],
    [
      "gpu-slow:rank=9:from=8:severity=1.6",
      "dataloader:rank=25:from=8:severity=3",
      { gpus: 32, tp: 1, pp: 1, seed: 7 },
      [9, 25],
    ],
    [
      "gpu-slow:rank=5:from=8:severity=2",
      "dataloader:rank=12:from=8:severity=4",
      { gpus: 32, seed: 4 },
      [5, 12],
    ],
  ];
  // Beside one that costs much more the other may be too little to name: then it is not said only to wait.
  it.each(few(cases, 2))("%s and %s are named", async (one, other, shape, ranks) => {
    const files = filesOf(
      { gpus: 16, iterations: 20, ...shape },
      ["operators", "logs"],
      one,
      other,
    );
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    const blamed = verdict.suspects.flatMap((suspect) => suspect.ranks).sort((a, b) => a - b);
    expect(ranks).toEqual(expect.arrayContaining(blamed));
    expect(blamed).not.toEqual([]);
    expect(verdict.victims.filter((rank) => ranks.includes(rank))).toEqual([]);
  });

  it("that cannot both be named leave neither among those that only wait", async () => {
    // Of the first only three iterations before it are known, and the second costs eight times as much.
    const faults = ["gpu-slow:rank=5:from=6:severity=2", "dataloader:rank=12:from=12:severity=5"];
    const files = filesOf({ gpus: 32, seed: 8, iterations: 20 }, ["operators", "logs"], ...faults);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect([5, 12]).toEqual(expect.arrayContaining([...verdict.suspects[0]!.ranks]));
    expect(verdict.victims.filter((rank) => rank === 5 || rank === 12)).toEqual([]);
  });
});

describe("a rank that was always a little slower", () => {
  it.each(few([41, 42, 43], 1))("is not what made the job slow later (seed %s)", async (seed) => {
    const shape = {
      gpus: 16,
      tp: 1,
      pp: 1,
      layersPerStage: 2,
      microBatches: 4,
      iterations: 20,
      seed,
    };
    const faults = ["gpu-slow:rank=3:from=1:severity=1.15", "gpu-slow:rank=9:from=9:severity=2.5"];
    const files = filesOf(shape, ["operators", "logs"], ...faults);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.suspects).toMatchObject([{ ranks: [9], cause: "gpu-slow" }]);
    expect(verdict.victims).not.toContain(3);
  });
});

describe("a simulated fault that ended", () => {
  it.each(few(["gpu-slow:rank=5", "cpu-stall:rank=2"], 1))("%s is told as past", async (fault) => {
    const shape = { gpus: 16, layersPerStage: 1, microBatches: 4, iterations: 40, seed: 3 };
    const files = filesOf(shape, ["operators", "logs"], `${fault}:from=12:to=25:severity=3`);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict.summary).toMatch(
      /(computed|was held up).*, and that slowed the job down from iteration 12 to 25; it is over now.*only waited/,
    );
  });
});

describe("a simulated job", () => {
  it("that is healthy is called healthy", async () => {
    const files = filesOf({ gpus: 16 }, ["flight-recorder", "logs"]);
    const verdict = await diagnoseFiles([...files].map(([name, bytes]) => ({ name, bytes })));
    expect(verdict).toMatchObject({ kind: "healthy", suspects: [] });
  });

  it("that is a healthy pipeline of single ranks is called healthy: its last stage but one waits least", async () => {
    const shape = { gpus: 8, tp: 1, pp: 8, iterations: 12, layersPerStage: 4, microBatches: 8 };
    const files = filesOf({ ...shape, seed: 500 }, ["flight-recorder", "logs"]);
    const given = [...files].filter(([name]) => name !== "truth.json");
    const verdict = await diagnoseFiles(given.map(([name, bytes]) => ({ name, bytes })));
    expect(verdict).toMatchObject({ kind: "healthy", suspects: [], victims: [] });
  });

  it("of which only some dumps, or cut ones, are there is not called healthy", async () => {
    const files = [...filesOf({ gpus: 16 }, ["flight-recorder"])].filter(([path]) =>
      path.startsWith("flight"),
    );
    const some = files.slice(0, 5).map(([name, bytes]) => ({ name, bytes }));
    expect((await diagnoseFiles(some)).kind).toBe("undetermined");
    const cut = files.map(([name, bytes], i) => ({
      name,
      bytes: i === 3 ? bytes.subarray(0, -900) : bytes,
    }));
    expect((await diagnoseFiles(cut)).kind).toBe("undetermined");
  });

  it("is the same, byte by byte, with the same seed, in every format", () => {
    const all = ["flight-recorder", "logs", "metrics", "kineto", "operators"];
    const once = filesOf({ gpus: 8, tp: 2, pp: 2, iterations: 3 }, all, "gpu-slow:rank=3:from=2");
    const twice = filesOf({ gpus: 8, tp: 2, pp: 2, iterations: 3 }, all, "gpu-slow:rank=3:from=2");
    const other = filesOf(
      { gpus: 8, tp: 2, pp: 2, iterations: 3, seed: 2 },
      all,
      "gpu-slow:rank=3:from=2",
    );
    expect([...twice.keys()]).toEqual([...once.keys()]);
    for (const [path, bytes] of once)
      expect([path, bytes.equals(twice.get(path)!)]).toEqual([path, true]);
    expect(
      other.get("operators/operators.flop")!.equals(once.get("operators/operators.flop")!),
    ).toBe(false);
  });

  it("tells its truth in the contract's words", () => {
    const files = filesOf(
      { gpus: 16, iterations: 9 },
      [],
      "gpu-slow:rank=5:from=6:to=8:severity=2",
    );
    expect(JSON.parse(files.get("truth.json")!.toString())).toMatchObject({
      kind: "fail-slow",
      faults: [
        {
          cause: "gpu-slow",
          ranks: [5],
          machine: "node000",
          link: null,
          fromIteration: 6,
          toIteration: 8,
          severity: 2,
        },
      ],
    });
    expect(JSON.parse(files.get("job.json")!.toString())).toMatchObject({
      worldSize: 16,
      parallel: { tp: 2, pp: 2, dp: 4, ep: 1 },
      rankOrder: "tp-dp-pp",
    });
  });

  it("draws an open end from Greyhound's durations: ten minutes in the mean for computation", () => {
    const base = { gpus: 2, tp: 1, pp: 1, noise: 0, iterations: 1 };
    const healthy = simulate(completeSpec(base)).iterations().next().value as IterationTimes;
    const faults = [parseFault("gpu-slow:rank=1:from=1:to=drawn")];
    const draws = 400;
    let minutes = 0;
    for (let seed = 0; seed < draws; seed++) {
      const { faults: drawn } = drawDurations(completeSpec({ ...base, seed, faults }));
      minutes += (drawn[0]!.to * healthy.endNs) / 60e9;
    }
    // The mean of 400 exponential draws spreads by 5 %.
    expect(minutes / draws).toBeGreaterThan(8.5);
    expect(minutes / draws).toBeLessThan(11.5);
  });
});
