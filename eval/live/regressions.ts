/**
 * Regressions of a running job through the agents' own code, the wire's frames and the service, on a set clock: `node --import tsx
 * eval/live/regressions.ts [--each N] [--hours N] [--seed S]`. A simulated job writes rings as the probes do. Counts how many
 * regressions are named with cause and owner within three minutes, as one incident, and false ones in healthy hours.
 */
import { parseArgs } from "node:util";
import { REGRESSION_OWNERS } from "../../src/model/regression.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { rehearseRings } from "../../test/support/live/ring-rehearsal.ts";
import { share } from "./cases.ts";

const { values } = parseArgs({
  options: {
    /** Jobs for each kind of regression. */
    each: { type: "string", default: "5" },
    hours: { type: "string", default: "50" },
    seed: { type: "string", default: "1" },
  },
});
const [each, hours] = [Number(values.each), Number(values.hours)];
const firstSeed = 1000 * Number(values.seed);

/** What is put in, and the cause that its summaries can show: products and other kernels that became slower are alike. */
const KINDS = [
  ["dataloader", "dataloader"],
  ["garbage-collection:how=now-and-then", "garbage-collection"],
  ["synchronization:how=layer", "synchronization"],
  ["synchronization:how=micro-batch", "synchronization"],
  ["slow-kernel", "slow-kernel"],
  ["minority-kernels", "slow-kernel"],
] as const;
const COSTS = [0.06, 0.08, 0.12, 0.2, 0.3];
const EVERY_MS = 1500;
const WITHIN_S = 180;
const HEALTHY_JOB_H = 5;
const HEALTHY_EVERY_MS = [3000, 5000, 8000, 12_000];
const MOST_TICK_MS = 2500;

function specOf(seed: number): Partial<ClusterSpec> {
  const [tp, pp] = [
    [2, 2],
    [4, 1],
    [1, 4],
    [2, 1],
  ][seed % 4]!;
  return { gpus: 8, gpusPerMachine: 2, tp: tp!, pp: pp!, sequence: 32_768, seed };
}

interface Outcome {
  readonly isRight: boolean;
  readonly incidents: number;
}

async function regression(
  kind: string,
  cause: string,
  cost: number,
  seed: number,
): Promise<Outcome> {
  // Four minutes: the detector needs a minute to begin and two for healthy windows.
  const from = Math.ceil((240 * 1000) / EVERY_MS) + (seed % 10);
  const fault = parseFault(`${kind}:cost=${cost}:from=${from}`);
  const rehearsal = await rehearseRings({
    spec: { ...specOf(seed), faults: [fault] },
    everyMs: EVERY_MS,
  });
  const onset = (): number => rehearsal.job.played.board.faults[0]?.firstEndMs ?? Infinity;
  const found = (): (typeof rehearsal.told)[number] | undefined =>
    rehearsal.told.find((one) => one.kind === "regression" && one.verdict !== null);
  await rehearsal.run(300 + WITHIN_S, () => rehearsal.nowMs() - onset() > 1000 * WITHIN_S);
  const first = found();
  const ids = new Set(
    rehearsal.told.filter((one) => one.openedMs >= onset() - 5000).map(({ id }) => id),
  );
  const isRight =
    first?.verdict?.suspects[0]?.cause === cause &&
    first.verdict.owner === REGRESSION_OWNERS[cause as "dataloader"];
  const seconds = first ? ((first.changedMs - onset()) / 1000).toFixed(0) : "-";
  console.log(
    `  ${kind}, ${100 * cost} %, seed ${seed}: ${isRight ? "right" : (first?.verdict?.suspects[0]?.cause ?? "nothing")}, ${seconds} s, incidents ${ids.size}`,
  );
  await rehearsal.close();
  return { isRight, incidents: ids.size };
}

const outcomes: Outcome[] = [];
for (let k = 0; k < each; k++)
  for (const [at, [kind, cause]] of KINDS.entries())
    outcomes.push(
      await regression(
        kind,
        cause,
        COSTS[(k + firstSeed / 1000 - 1) % COSTS.length]!,
        firstSeed + KINDS.length * k + at,
      ),
    );
let falseRegressions = 0;
let falseSlowdowns = 0;
for (let h = 0, k = 0; h < hours; h += HEALTHY_JOB_H, k++) {
  const spec = specOf(firstSeed + 500 + k);
  const everyMs = HEALTHY_EVERY_MS[(firstSeed / 1000 + k) % HEALTHY_EVERY_MS.length]!;
  const tickMs = Math.min(MOST_TICK_MS, everyMs / 2);
  const rehearsal = await rehearseRings({ spec, everyMs, tickMs });
  await rehearsal.run(3600 * Math.min(HEALTHY_JOB_H, hours - h));
  const opened = new Map(rehearsal.told.map((one) => [one.id, one]));
  for (const one of opened.values()) {
    if (one.kind === "regression") falseRegressions++;
    else falseSlowdowns++;
    console.log(
      `  healthy, seed ${spec.seed}: ${one.kind} ${one.state}: ${one.summary.slice(0, 200)}`,
    );
  }
  await rehearsal.close();
}
const right = outcomes.filter((one) => one.isRight).length;
const single = outcomes.filter((one) => one.incidents === 1).length;
console.log(
  `\nseeds from ${firstSeed}, regressions of 6 to 30 % of the step, 8 GPUs on 4 machines`,
);
console.log(`named with cause and owner within 3 minutes: ${share(right, outcomes.length)}`);
console.log(`told as one incident: ${share(single, outcomes.length)}`);
console.log(
  `healthy: ${falseRegressions} regressions, ${falseSlowdowns} other incidents in ${hours} hours`,
);
process.exit(0);
