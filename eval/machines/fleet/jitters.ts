/**
 * What touches single machines without being a fault: jitters ("short-term metric fluctuations … before being
 * normalized afterward", Minder §6.1), writers of checkpoints, machines that start late, Xids of yesterday.
 */
import { act, type Act, type GpuChange, type NodeChange } from "./acts.ts";
import { Draw } from "./draw.ts";
import { checkpointAt, type Slowdown } from "./job-clock.ts";
import type { Nuisances } from "./nuisances.ts";

export interface Jitter {
  readonly machine: number;
  readonly kind: string;
  readonly fromS: number;
  readonly untilS: number;
}

const KINDS = [
  "cpu-up",
  "cpu-down",
  "pfc",
  "congestion",
  "tcp",
  "traffic",
  "idle",
  "throttle",
  "memory",
] as const;
const SHORTEST_S = 3;
const LONGEST_S = 120;

export interface Jitters {
  readonly jitters: readonly Jitter[];
  readonly acts: readonly Act[];
  /** A GPU or NIC that lags holds the whole job up. */
  readonly slowdowns: readonly Slowdown[];
}

export function drawJitters(
  machines: number,
  gpus: number,
  seconds: number,
  rate: number,
  culprits: ReadonlySet<number>,
  seed: number,
): Jitters {
  const jitters: Jitter[] = [];
  const acts: Act[] = [];
  const slowdowns: Slowdown[] = [];
  const count = new Draw(seed, "jitters").poisson(0, (rate * machines * seconds) / 900);
  for (let n = 0; n < count; n++) {
    const draw = new Draw(seed, "jitter", n);
    const machine = draw.whole(0, machines);
    if (culprits.has(machine)) continue;
    const fromS = draw.within(1, 0, seconds);
    const untilS = fromS + draw.magnitude(2, SHORTEST_S, LONGEST_S);
    const kind = draw.pick(3, KINDS);
    jitters.push({ machine, kind, fromS, untilS });
    const { node, gpu } = changeOf(kind, draw);
    const isOne = kind === "idle" || kind === "throttle" || kind === "traffic";
    acts.push(
      act({ machine, fromS, untilS, node, gpu, gpus: isOne ? [draw.whole(4, gpus)] : null }),
    );
    if (isOne) slowdowns.push({ fromS, untilS, pace: draw.within(5, 0.75, 0.95), rampS: 0 });
  }
  return { jitters, acts, slowdowns };
}

/** As strong as a fault: only their length tells them apart. */
function changeOf(
  kind: (typeof KINDS)[number],
  draw: Draw,
): { node: NodeChange | null; gpu: GpuChange | null } {
  switch (kind) {
    case "cpu-up":
      return { node: { contention: draw.within(10, 0.1, 0.6) }, gpu: null };
    case "cpu-down":
      return { node: { cpu: draw.within(10, 0.1, 0.6) }, gpu: null };
    case "pfc":
      return { node: null, gpu: { pfc: draw.magnitude(10, 10, 3000) } };
    case "congestion":
      return { node: null, gpu: { congestion: draw.magnitude(10, 4, 60) } };
    case "tcp":
      return { node: { tcp: draw.magnitude(10, 5, 200) }, gpu: null };
    case "traffic":
      return {
        node: null,
        gpu: { traffic: draw.within(10, 0.3, 0.8), pfc: draw.magnitude(11, 3, 100) },
      };
    case "idle":
      return { node: null, gpu: { idle: draw.within(10, 0.3, 0.95) } };
    case "throttle":
      return { node: null, gpu: { throttle: draw.within(10, 1.1, 1.8) } };
    case "memory":
      return { node: { memory: draw.within(10, 1.15, 1.8) }, gpu: null };
  }
}

/** Whoever writes a checkpoint is busy for longer than the others pause. */
export function checkpointActs(nuisances: Nuisances, seconds: number, stageOf: Int32Array): Act[] {
  const { checkpoints } = nuisances;
  if (!checkpoints) return [];
  const writers: number[] = [];
  stageOf.forEach((stage, machine) => {
    const isFirst = machine === 0 || stageOf[machine - 1] !== stage;
    if (checkpoints.writers === "stages" ? isFirst : machine === 0) writers.push(machine);
  });
  const acts: Act[] = [];
  for (let s = 0; s < seconds; s++) {
    if (checkpointAt(s, checkpoints) !== 0) continue;
    for (const machine of writers) {
      const node = { cpu: 2.2, memory: 1.5, tcp: 8, iowait: 0.03, diskBytes: 2e9 };
      acts.push(act({ machine, fromS: s, untilS: s + checkpoints.writeS, node }));
    }
  }
  return acts;
}

/** Machines start one after the other. */
export function warmupActs({ warmupS }: Nuisances, machines: number, seed: number): Act[] {
  if (warmupS === 0) return [];
  return Array.from({ length: machines }, (_, machine) =>
    act({
      machine,
      fromS: -Infinity,
      untilS: new Draw(seed, "start", machine).within(0, 0, warmupS),
      node: { cpu: 0.05, memory: 0.3, tcp: 0.002 },
      gpu: { memory: "freed" },
    }),
  );
}

export function oldXidActs(
  { oldXids }: Nuisances,
  machines: number,
  gpus: number,
  seed: number,
): Act[] {
  const acts: Act[] = [];
  for (let machine = 0; machine < machines; machine++) {
    const draw = new Draw(seed, "old-xid", machine);
    if (!draw.chance(0, oldXids)) continue;
    const gpu = { xid: draw.pick(1, [13, 31, 43, 63, 94]) };
    acts.push(
      act({ machine, fromS: -Infinity, untilS: Infinity, gpus: [draw.whole(2, gpus)], gpu }),
    );
  }
  return acts;
}
