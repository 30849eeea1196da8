/**
 * Whether rings and PyTorch's flight recorder tell the same story of one job: `npm run eval -- probe PATH…`, each PATH
 * a folder or an archive that holds both. Rank by rank: as many operators, in the same order, of the same size, and how
 * far the durations are apart where both timed them.
 */
import { ingest } from "../../src/ingest/ingest.ts";
import { COMPLETED, type FlightDump } from "../../src/model/operators.ts";
import type { Env } from "../../src/model/job.ts";

interface Operator {
  readonly what: string;
  readonly numel: number;
  /** NaN where it was not timed. */
  readonly ms: number;
}

const env: Env = { signal: new AbortController().signal, progress: () => undefined };

/** What both sources can tell of an operator: "all_reduce", "send", and how much. */
function operatorsOf({ ops }: FlightDump): Operator[] {
  return Array.from({ length: ops.count }, (_, i) => {
    const name = ops.names[ops.name[i]!]!;
    return {
      what: name.replace(/[ _](?:barrier|\d.*)$/, "").replace(/^_|_base$/g, ""),
      numel: Math.max(ops.inputNumel[i]!, ops.outputNumel[i]!),
      ms: ops.state[i] === COMPLETED ? durationOf(ops, i) : NaN,
    };
  });
}

function durationOf(ops: FlightDump["ops"], i: number): number {
  if (ops.durationMs[i]! > 0) return ops.durationMs[i]!;
  return (ops.completedNs[i]! - ops.startedNs[i]!) / 1e6;
}

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;

async function compare(path: string): Promise<void> {
  const { readings } = await ingest([path], env);
  const byRank = new Map<number, { ring?: FlightDump; recorder?: FlightDump }>();
  for (const reading of readings) {
    for (const dump of reading.dumps ?? []) {
      if (reading.rank === null) continue;
      const both = byRank.get(reading.rank) ?? {};
      if (reading.format === "probe-ring") both.ring = dump;
      else both.recorder = dump;
      byRank.set(reading.rank, both);
    }
  }
  const apart: number[] = [];
  const relative: number[] = [];
  let [pairs, same, ranks] = [0, 0, 0];
  for (const [rank, { ring, recorder }] of [...byRank].sort((a, b) => a[0] - b[0])) {
    if (!ring || !recorder) {
      console.log(`  rank ${rank}: only ${ring ? "a ring" : "a flight-recorder dump"}`);
      continue;
    }
    const ours = operatorsOf(ring);
    const theirs = operatorsOf(recorder);
    ranks++;
    let firstUnlike = -1;
    for (let i = 0; i < Math.min(ours.length, theirs.length); i++) {
      const [a, b] = [ours[i]!, theirs[i]!];
      pairs++;
      if (a.what === b.what && a.numel === b.numel) same++;
      else if (firstUnlike < 0) firstUnlike = i;
      const difference = a.ms - b.ms;
      if (!Number.isNaN(difference)) {
        apart.push(Math.abs(difference));
        relative.push(Math.abs(difference) / Math.max(b.ms, 1e-3));
      }
    }
    const unlike =
      firstUnlike < 0
        ? "all alike"
        : `first unlike at ${firstUnlike}: ${JSON.stringify(ours[firstUnlike])} and ${JSON.stringify(theirs[firstUnlike])}`;
    console.log(`  rank ${rank}: ${ours.length} and ${theirs.length} operators, ${unlike}`);
  }
  apart.sort((a, b) => a - b);
  relative.sort((a, b) => a - b);
  console.log(
    `${path}: ${ranks} ranks, ${same} of ${pairs} operators alike in order, kind and size; ${apart.length} timed by both: ` +
      `apart by ${quantile(apart, 0.5).toFixed(3)} ms (median), ${quantile(apart, 0.9).toFixed(3)} (90 %), ` +
      `${quantile(apart, 0.99).toFixed(3)} (99 %); relative ${(100 * quantile(relative, 0.5)).toFixed(1)} % (median)`,
  );
}

const paths = process.argv.slice(2);
if (paths.length === 0) {
  console.log("probe: give folders or archives that hold rings and flight-recorder dumps of a job");
}
for (const path of paths) await compare(path);
