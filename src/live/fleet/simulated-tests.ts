/** What ranks of a simulated job measure when they are asked to test their GPUs and links: from the faults that act. */
import { seeded } from "../../base/random.ts";
import { devicesAt, placedDevices, type DeviceState } from "../../simulate/cluster/faults.ts";
import type { TransferTest } from "../../model/validation.ts";
import type { FaultSpec } from "../../simulate/cluster/fault-spec.ts";
import type { Validation } from "../agent/rings/control.ts";
import type { Simulation } from "../../simulate/cluster/times.ts";

export interface SimulatedTests extends Omit<Validation, "ranks" | "limitS"> {
  /** Who takes part, in the order of the group. */
  readonly group: readonly number[];
}

/** One product, and a MiB over NVLink and between machines. */
const PRODUCT_MS = 1.2;
const INSIDE_MS = 0.005;
const BETWEEN_MS = 0.04;
const NOISE = 0.02;
const MIB = 1 << 20;

/** The report of one rank, as the probe writes it (model/validation.ts); null where it takes no part. */
export function simulatedReport(
  { spec, topology }: Simulation,
  faults: readonly FaultSpec[],
  rank: number,
  tests: SimulatedTests,
  timeMs: number,
): object | null {
  const { group, atIteration, rounds, stride = 1, repeats, mb } = tests;
  if (!group.includes(rank)) return null;
  const random = seeded(spec.seed * 7919 + atIteration * 31 + rank);
  // Tests come after the iteration that they are named by: what was slow in it may be over.
  const devicesAfter = (iteration: number): DeviceState =>
    devicesAt({ ...spec, faults }, topology, iteration + 1) ?? placedDevices(spec, topology);
  const repeated = (ms: number): number[] =>
    Array.from({ length: repeats }, () => ms * (1 + NOISE * random()));
  const transferMs = (devices: DeviceState, from: number, to: number): number => {
    const link = devices.pair.get(from * spec.gpus + to) ?? 1;
    if (topology.machineOf(from) === topology.machineOf(to))
      return mb * INSIDE_MS * Math.max(link, devices.nvlink[from]!, devices.nvlink[to]!);
    const leaves = [from, to].map((end) => devices.leaf[topology.leafOf(end)] ?? 1);
    return mb * BETWEEN_MS * Math.max(link, devices.nic[from]!, devices.nic[to]!, ...leaves);
  };
  const topologies = [
    ...(tests.ring ? (["ring"] as const) : []),
    ...(tests.tree ? (["tree"] as const) : []),
    ...(stride > 1 ? (["rail"] as const) : []),
  ];
  const passes = {
    ring: ringPasses(group.length),
    tree: treePasses(group.length),
    rail: railPasses(group.length, stride),
  };
  const transfersIn = (iteration: number, devices: DeviceState): TransferTest[] =>
    topologies.flatMap((name) =>
      passes[name].flatMap((pairs, pass) =>
        pairs
          .filter(([, to]) => group[to] === rank)
          .map(([from, to]) => ({
            topology: name,
            pass,
            from: group[from]!,
            to: group[to]!,
            bytes: mb * MIB,
            ms: repeated(transferMs(devices, group[from]!, group[to]!)),
            ...(rounds === undefined ? {} : { iteration }),
          })),
      ),
    );
  const transfers = Array.from({ length: rounds ?? 1 }, (_, k) => atIteration + k).flatMap(
    (iteration) => transfersIn(iteration, devicesAfter(iteration)),
  );
  const gemm = tests.gemm
    ? [
        {
          dtype: "bfloat16",
          m: 4096,
          n: 4096,
          k: 4096,
          ms: repeated(PRODUCT_MS * devicesAfter(atIteration).gpu[rank]!),
        },
      ]
    : [];
  const tookMs = [...gemm, ...transfers].reduce(
    (sum, { ms }) => sum + ms.reduce((a, b) => a + b, 0),
    0,
  );
  return {
    schema: "faultline.validation/1",
    rank,
    host: topology.machineName(topology.machineOf(rank)),
    device: "simulated",
    iteration: atIteration,
    ...(rounds === undefined ? {} : { rounds }),
    timeMs,
    tookMs,
    group,
    gemm,
    transfers,
  };
}

type Pair = readonly [from: number, to: number];

/** As the probe's (Greyhound §4.3, figure 10): every link of the ring once, no member twice in a pass. */
function ringPasses(size: number): Pair[][] {
  if (size < 2) return [];
  const passes: Pair[][] = [[], [], []];
  for (let i = 0; i < size; i++) {
    const isLast = i === size - 1;
    passes[isLast && size % 2 === 1 ? 2 : i % 2]!.push([i, (i + 1) % size]);
  }
  return passes.filter((pass) => pass.length > 0);
}

/** The rings of members that are `stride` places apart. */
function railPasses(size: number, stride: number): Pair[][] {
  let [cycles, rest] = [size, stride % size];
  while (rest > 0) [cycles, rest] = [rest, cycles % rest];
  const at = (start: number, place: number): number => (start + place * stride) % size;
  return ringPasses(size / cycles).map((pairs) =>
    Array.from({ length: cycles }, (_, start) =>
      pairs.map(([a, b]): Pair => [at(start, a), at(start, b)]),
    ).flat(),
  );
}

/** Every edge of the binary tree once, from child to parent. */
function treePasses(size: number): Pair[][] {
  const passes: Pair[][] = [[], [], [], []];
  for (let child = 1; child < size; child++) {
    const level = Math.floor(Math.log2(child + 1));
    passes[(level % 2) * 2 + (child % 2 === 0 ? 1 : 0)]!.push([child, (child - 1) >> 1]);
  }
  return passes;
}

/** The request in a ring's header (probe/RING.md); null where it is none. */
export function parsedTests(text: string): SimulatedTests | null {
  try {
    const { ranks, ...tests } = JSON.parse(text) as Omit<SimulatedTests, "group"> & {
      readonly ranks?: string;
    };
    const group = (ranks ?? "").split(",").flatMap((run) => {
      const [, first, last = first, step = "1"] = /^(\d+)(?:-(\d+)\/(\d+))?$/.exec(run) ?? [];
      if (first === undefined) return [];
      const count = Math.floor((Number(last) - Number(first)) / Number(step)) + 1;
      return Array.from({ length: count }, (_, i) => Number(first) + i * Number(step));
    });
    return { ...tests, group };
  } catch {
    return null;
  }
}
