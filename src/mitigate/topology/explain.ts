/** What the swaps of a topology plan achieve, in one sentence. */
import { count, thousands } from "../../base/text.ts";
import { identity, type JobTables } from "./cost-model.ts";

interface Outcome {
  readonly swaps: number;
  readonly placeOf: Int32Array;
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly healthyMs: number;
}

export function explainSwaps(job: JobTables, bad: readonly number[], outcome: Outcome): string {
  const { beforeMs, afterMs, healthyMs } = outcome;
  const before = tally(job, bad, identity(outcome.placeOf.length));
  const after = tally(job, bad, outcome.placeOf);
  const changes = before.flatMap(([what, n], i) =>
    after[i]![1] < n ? [`${what} ${n} → ${after[i]![1]}`] : [],
  );
  const how = changes.length > 0 ? changes.join(", ") : "slow slots sit where they cost less";
  return `${count(outcome.swaps, "swap")} ${outcome.swaps === 1 ? "brings" : "bring"} an iteration from ${ms(beforeMs)} to ${ms(afterMs)} (${ms(healthyMs)} on healthy devices): ${how}`;
}

/** Why nothing is moved; `bestMs` is the best that was found. */
export function explainNothing(
  job: JobTables,
  bad: readonly number[],
  beforeMs: number,
  bestMs: number,
): string {
  const slots = job.compute.length;
  if (bad.length === 0) return "no swap: no slot and no link is slow";
  if (slots === 1) return "no swap: the job has one slot only";
  const gain = `${((100 * (beforeMs - bestMs)) / beforeMs).toFixed(1)} %`;
  if (bad.length === slots)
    return `no swap: all ${thousands(slots)} slots are slow or end at a slow link, there is no room (best found: ${gain} faster)`;
  return `no swap: no other places make an iteration of ${ms(beforeMs)} faster by 1 % (best found: ${gain})`;
}

/** Where slow slots and links are: the fewer the better. */
function tally(job: JobTables, bad: readonly number[], placeOf: Int32Array): [string, number][] {
  const { replicas, links, compute, network } = job;
  const stageOf = (slot: number): number => Math.floor(placeOf[slot]! / replicas);
  const replicaOf = (slot: number): number => placeOf[slot]! % replicas;
  const slow = bad.filter((slot) => compute[slot]! > 1 || network[slot]! > 1);
  let inExchange = 0;
  let inPipeline = 0;
  for (let link = 0; link < links.factor.length; link++) {
    const a = links.a[link]!;
    const b = links.b[link]!;
    if (stageOf(a) === stageOf(b)) inExchange++;
    if (replicaOf(a) === replicaOf(b) && Math.abs(stageOf(a) - stageOf(b)) === 1) inPipeline++;
  }
  return [
    ["slow links that gradients pass", inExchange],
    ["slow links that activations pass", inPipeline],
    ["stages with slow slots", new Set(slow.map(stageOf)).size],
    ["replicas with slow slots", new Set(slow.map(replicaOf)).size],
  ];
}

const ms = (value: number): string =>
  `${value < 100 ? value.toFixed(1) : thousands(Math.round(value))} ms`;
