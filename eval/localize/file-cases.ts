/** Random jobs of up to 256 GPUs with one fault of any kind, for the way through real files. */
import { pick, randomInt, seeded, type Random } from "../../src/base/random.ts";
import { simulate } from "../../src/simulate/cluster/engine.ts";
import { NO_GROUP } from "../../src/simulate/cluster/program.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { makeTopology } from "../../src/simulate/cluster/topology.ts";

export const FILE_KINDS = [
  "gpu-slow",
  "cpu-stall",
  "gpu-slow spikes",
  "gpu-slow fluctuating",
  "always slow",
  "two GPUs",
  "dataloader",
  "nic",
  "link",
  "leaf",
  "healthy",
] as const;
export type FileKind = (typeof FILE_KINDS)[number];

export interface FileCase {
  readonly seed: number;
  readonly kind: FileKind;
  readonly fault: string;
  readonly spec: ClusterSpec;
  readonly ranks: readonly number[];
  readonly causes: readonly string[];
}

const LAYOUTS: readonly Partial<ClusterSpec>[] = [
  { gpus: 8, tp: 1, pp: 1 },
  { gpus: 8, tp: 1, pp: 4 },
  { gpus: 16, tp: 4, pp: 1 },
  { gpus: 16, tp: 2, pp: 2 },
  { gpus: 32, tp: 2, pp: 4 },
  { gpus: 32, tp: 2, pp: 4, schedule: "interleaved" },
  { gpus: 32, tp: 2, pp: 2, ep: 4 },
  { gpus: 32, tp: 2, pp: 2, cp: 2 },
  { gpus: 64, tp: 4, pp: 4 },
  { gpus: 64, tp: 8, pp: 4, schedule: "gpipe" },
  { gpus: 64, tp: 4, pp: 2, ep: 8 },
  { gpus: 128, tp: 4, pp: 8 },
  { gpus: 128, tp: 8, pp: 2, ep: 4 },
  { gpus: 256, tp: 8, pp: 4 },
];

const ITERATIONS = 24;
/** Entries that PyTorch keeps by default. */
const RING = 2000;

/** The middle of the iterations that the ring of the rank that calls most still holds. */
function middleOfRing(spec: ClusterSpec): number {
  const most = Math.max(
    ...simulate(spec).programs.map(({ role }) => role.filter((each) => each !== NO_GROUP).length),
  );
  const held = Math.min(ITERATIONS, Math.floor(RING / most));
  return ITERATIONS + 1 - Math.floor(held / 2);
}

export function drawFileCase(seed: number): FileCase {
  const random = seeded(seed);
  const kind = FILE_KINDS[seed % FILE_KINDS.length]!;
  const layout = pick(random, LAYOUTS);
  const healthy = completeSpec({
    ...layout,
    hidden: pick(random, [4096, 8192]),
    sequence: pick(random, [4096, 8192]),
    microBatches: pick(random, [4, 8]),
    layersPerStage: layout.schedule === "interleaved" ? 2 : pick(random, [1, 2]),
    overlapGradients: random() < 0.7,
    gpusPerMachine: Math.min(8, layout.gpus! / 2),
    machinesPerLeaf: 4,
    iterations: ITERATIONS,
    seed,
    noise: 1,
  });
  const { fault, ranks, causes } = drawFault(kind, healthy, random);
  const faults = fault === "" ? [] : [parseFault(fault)];
  return { seed, kind, fault, spec: { ...healthy, faults }, ranks, causes };
}

function drawFault(
  kind: FileKind,
  healthy: ClusterSpec,
  random: Random,
): Pick<FileCase, "fault" | "ranks" | "causes"> {
  const { gpus, pp } = healthy;
  const rank = randomInt(random, gpus);
  const between = (low: number, high: number): string => (low + (high - low) * random()).toFixed(2);
  const since = middleOfRing(healthy);
  const one = (fault: string, causes: readonly string[]) => ({ fault, ranks: [rank], causes });
  switch (kind) {
    case "gpu-slow":
      return one(`gpu-slow:rank=${rank}:from=${since}:severity=${between(1.3, 3)}`, ["gpu-slow"]);
    case "cpu-stall":
      return one(`cpu-stall:rank=${rank}:from=${since}:severity=${between(3, 10)}`, ["cpu-stall"]);
    case "gpu-slow spikes":
      return one(`gpu-slow:rank=${rank}:from=5:severity=${between(2, 4)}:shape=spike`, [
        "gpu-slow",
      ]);
    case "gpu-slow fluctuating":
      return one(`gpu-slow:rank=${rank}:from=5:severity=${between(1.5, 3)}:shape=fluctuation`, [
        "gpu-slow",
      ]);
    case "always slow":
      return one(`gpu-slow:rank=${rank}:severity=${between(1.4, 2.5)}`, ["gpu-slow"]);
    case "two GPUs": {
      const other = (rank + 1 + randomInt(random, gpus - 1)) % gpus;
      const severity = between(1.5, 2.5);
      return {
        fault: `gpu-slow:rank=${rank},${other}:from=${since}:severity=${severity}`,
        ranks: [rank, other].sort((a, b) => a - b),
        causes: ["gpu-slow"],
      };
    }
    case "dataloader": {
      const first = randomInt(random, gpus / pp);
      const fault = `dataloader:rank=${first}:from=${since}:severity=${between(5, 20)}`;
      return { fault, ranks: [first], causes: ["dataloader", "cpu-stall"] };
    }
    case "nic":
      return one(`network-slow:rank=${rank}:from=${since}:severity=${between(3, 12)}`, [
        "network-slow",
      ]);
    case "link": {
      const lanes = gpus / pp;
      const a = pp > 1 ? randomInt(random, gpus - lanes) : randomInt(random, gpus - 1);
      const b = pp > 1 ? a + lanes : a + 1;
      const fault = `network-slow:link=${a}-${b}:from=${since}:severity=${between(8, 30)}`;
      return { fault, ranks: [a, b], causes: ["network-slow"] };
    }
    case "leaf": {
      const topology = makeTopology(healthy);
      const leaf = topology.leafOf(rank);
      const ranks = Array.from({ length: gpus }, (_, r) => r).filter(
        (r) => topology.leafOf(r) === leaf,
      );
      const fault = `network-slow:switch=leaf${leaf}:from=${since}:severity=${between(3, 8)}`;
      return { fault, ranks, causes: ["network-slow"] };
    }
    case "healthy":
      return { fault: "", ranks: [], causes: [] };
  }
}
