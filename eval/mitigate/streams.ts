/**
 * Streams of faults whose lengths nobody knows: what the planner loses beside doing nothing, and beside what it states
 * as its bound (ski-rental.ts).
 */
import { randomInt, seeded } from "../../src/base/random.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import { completeSpec } from "../../src/simulate/cluster/spec.ts";
import { USUAL_OVERHEADS } from "../../src/mitigate/remedies.ts";
import { closedLoop } from "./closed-loop.ts";

const ITERATIONS = 240;
const SHAPES = [
  { gpus: 16, tp: 2, pp: 2, dp: 4, gpusPerMachine: 2 },
  { gpus: 16, tp: 1, pp: 4, dp: 4, gpusPerMachine: 1 },
  { gpus: 32, tp: 4, pp: 2, dp: 4, gpusPerMachine: 4 },
  { gpus: 8, tp: 1, pp: 1, dp: 8, gpusPerMachine: 8 },
];

export async function faultStreams(first: number, count: number): Promise<string> {
  let [better, same, worse, within, lostWith, lostWithout] = [0, 0, 0, 0, 0, 0];
  let worst = { ratio: 0, seed: 0, faults: "" };
  for (let seed = first; seed < first + count; seed++) {
    const random = seeded(seed);
    const shape = SHAPES[seed % SHAPES.length]!;
    const faults: string[] = [];
    // From the shortest that nobody can act on to longer than the job; exponential, as lengths of fail-slows are.
    for (let from = 20; from < ITERATIONS - 10; from += 10 + Math.round(-40 * Math.log(random()))) {
      const length = Math.max(1, Math.round(-40 * Math.log(random())));
      const severity = (1.15 + 2 * random() ** 2).toFixed(2);
      const isLink = shape.gpus / shape.gpusPerMachine > 1 && random() < 0.35;
      const rank = randomInt(random, shape.gpus);
      const lanes = shape.gpus / shape.pp;
      const peer = Math.floor(rank / lanes) * lanes + (((rank % lanes) + shape.tp) % lanes);
      faults.push(
        isLink
          ? `network-slow:link=${rank}-${peer}:from=${from}:to=${from + length}:severity=${(4 * Number(severity)).toFixed(1)}`
          : `gpu-slow:rank=${rank}:from=${from}:to=${from + length}:severity=${severity}`,
      );
    }
    const spec = completeSpec({
      ...shape,
      iterations: ITERATIONS,
      microBatches: 8,
      seed,
      faults: faults.map(parseFault),
    });
    const overheads = { ...USUAL_OVERHEADS, topologyMs: 10_000 };
    const plain = await closedLoop(spec, { isMitigating: false, overheads });
    const treated = await closedLoop(spec, { isMitigating: true, overheads });
    const loss = (totalMs: number): number => totalMs - ITERATIONS * plain.healthyMs;
    const [without, withIt] = [loss(plain.totalMs), loss(treated.totalMs)];
    lostWithout += without;
    lostWith += withIt;
    if (withIt < 0.99 * without) better++;
    else if (withIt <= 1.01 * without) same++;
    else worse++;
    if (withIt <= treated.bound * without) within++;
    const ratio = withIt / without;
    if (ratio > worst.ratio) worst = { ratio, seed, faults: faults.join(" ") };
  }
  return [
    `### Streams of faults: ${count} jobs, seeds ${first} to ${first + count - 1}\n`,
    `Time lost to faults (and to acting): ${(lostWithout / 1000).toFixed(0)} s without, ${(lostWith / 1000).toFixed(0)} s with mitigation. Less lost in ${better} jobs, the same within 1 % in ${same}, more in ${worse}.`,
    `Within the stated bound (the planner's, and once more for tests of links): ${within} of ${count}. Worst: ${worst.ratio.toFixed(2)} times what doing nothing loses (seed ${worst.seed}).`,
  ].join("\n");
}
