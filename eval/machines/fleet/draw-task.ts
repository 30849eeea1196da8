/** Tasks as Minder's evaluation had them (§6): what is known of its mix is taken, the rest is drawn and said. */
import { CATALOG } from "../../../src/model/metric-catalog.ts";
import { Draw } from "./draw.ts";
import type { FaultType, GivenFault, SlowType } from "./faults.ts";
import type { FleetTaskOptions } from "./fleet-task.ts";
import { USUAL, type Nuisances } from "./nuisances.ts";

/**
 * Shares of the types. §6 names four; the other 40.7 % are divided as in Table 1, where they are 32.3 %: hence the
 * factor. "Others" of the table included.
 */
const REST = 40.7 / 32.3;
export const FAULT_MIX: Readonly<Record<Exclude<FaultType, SlowType>, number>> = {
  ecc: 25.7,
  "cuda-execution": 15,
  "gpu-execution": 10,
  pcie: 8.6,
  "nic-drop": 5.7 * REST,
  "card-drop": 2 * REST,
  nvlink: 1.7 * REST,
  aoc: 0.9 * REST,
  hdfs: 5.7 * REST,
  unreachable: 6 * REST,
  other: 10.3 * REST,
};

/** §6: 30 % have 600 machines and more, up to 1,500, from 4. Within these, evenly by magnitude (assumed). */
const SIZES: readonly (readonly [share: number, least: number, most: number])[] = [
  [0.2, 4, 32],
  [0.25, 32, 128],
  [0.25, 128, 600],
  [0.2, 600, 1024],
  [0.1, 1024, 1500],
];

/** What default settings of dcgm-exporter and node_exporter lack of the 21. */
export const OPTIONAL_METRICS: readonly string[] = [
  "gpu-sm-activity",
  "gpu-fp-engine-activity",
  "pcie-usage",
  "nvlink-bandwidth",
  "pfc-tx-packet-rate",
  "tcp-rdma-throughput",
  "ecn-packet-rate",
  "cnp-packet-rate",
];

/**
 * How long abnormal metrics last before the halt: Figure 4 is a curve of which the text says "most over five minutes"
 * and "most longer than four"; drawn: one in eight 1 to 4 minutes, one in eight 4 to 5, the rest 5 to 30.
 */
function drawDurationS(draw: Draw): number {
  const which = draw.unit(30);
  if (which < 0.125) return draw.within(31, 60, 240);
  if (which < 0.25) return draw.within(31, 240, 300);
  return draw.magnitude(31, 300, 1800);
}

function drawMachines(draw: Draw): number {
  let left = draw.unit(0);
  for (const [share, least, most] of SIZES)
    if ((left -= share) < 0) return Math.round(draw.magnitude(1, least, most));
  return SIZES[0]![1];
}

/** Options for fleetTask: whoever needs another interval or size spreads them and sets it. */
export function drawTask(seed: number, isFaulty: boolean): FleetTaskOptions {
  const draw = new Draw(seed, "draw-task");
  const machines = drawMachines(draw);
  const seconds = Math.round(draw.within(2, 900, 1500));
  const stages = [1, 2, 4, 8, 16].filter((pp) => pp * 2 <= machines && (machines >= 64 || pp <= 4));
  const stepS = draw.chance(4, 0.7) ? 1 : draw.pick(5, [5, 10, 15, 30]);
  const metrics = drawMetrics(draw);
  return {
    machines,
    gpusPerMachine: 8,
    pp: draw.pick(3, stages),
    stepS,
    seconds,
    seed,
    fault: isFaulty ? drawFault(draw, machines, seconds) : null,
    nuisances: drawNuisances(draw, seconds, stepS, isFaulty),
    ...(metrics ? { metrics } : {}),
  };
}

function drawFault(draw: Draw, machines: number, seconds: number): GivenFault {
  const onsetS = Math.round(draw.within(32, 0.2, 0.55) * seconds);
  const endS = Math.round(onsetS + drawDurationS(draw));
  return {
    type: draw.weighted(33, FAULT_MIX),
    machines: [draw.whole(34, machines)],
    onsetS,
    untilS: endS < seconds ? endS : null,
  };
}

function drawMetrics(draw: Draw): string[] | null {
  const how = draw.unit(40);
  if (how < 0.5) return null;
  const isThere = (id: string, n: number): boolean =>
    !OPTIONAL_METRICS.includes(id) || (how >= 0.75 && draw.chance(50 + n, 0.5));
  return CATALOG.map(({ id }) => id).filter(isThere);
}

/** Checkpoints in most tasks, evaluation, warm-up and idle phases in some; shares assumed. */
function drawNuisances(
  draw: Draw,
  seconds: number,
  stepS: number,
  isFaulty: boolean,
): Partial<Nuisances> {
  const pauseS = draw.magnitude(61, 10, 120);
  const evaluationS = draw.within(64, 0.1, 0.8) * seconds;
  const endS = draw.within(68, 0.4, 0.9) * seconds;
  // A job that ends by itself has no fault to find; one that starts may.
  const isEnding = !isFaulty && draw.chance(67, 0.08);
  return {
    noise: {
      ...USUAL.noise,
      offsets: draw.within(70, 0.7, 1.4),
      slow: draw.within(71, 0.6, 1.6),
      fast: draw.within(72, 0.6, 1.5),
      common: draw.within(73, 0.5, 2),
    },
    wobble: draw.magnitude(74, 0.008, 0.04),
    jitters: USUAL.jitters * draw.magnitude(75, 0.3, 3),
    checkpoints: draw.chance(60, 0.75)
      ? {
          everyS: Math.round(draw.magnitude(62, 300, 1200)),
          pauseS: Math.round(pauseS),
          writeS: Math.round(pauseS * draw.within(63, 1.2, 3)),
          writers: draw.chance(76, 0.6) ? "stages" : "one",
        }
      : null,
    evaluation: draw.chance(65, 0.12)
      ? { fromS: evaluationS, untilS: evaluationS + draw.within(66, 30, 180) }
      : null,
    warmupS: draw.chance(69, 0.08) ? Math.round(draw.within(77, 20, 90)) : 0,
    idle: isEnding
      ? { fromS: endS, untilS: draw.chance(78, 0.5) ? Infinity : endS + draw.within(79, 60, 240) }
      : null,
    dcgmEveryS: stepS === 15 ? 30 : 0,
  };
}
