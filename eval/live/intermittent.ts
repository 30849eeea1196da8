/**
 * Spikes and fluctuations against the live service on a set clock, no sockets: `npm run eval --
 * intermittent [--gpus N] [--jobs N] [--faults N] [--seed S] [--healthy N] [--verbose]`. Half of the faults are spikes (one iteration in eight), half
 * fluctuations (two in seven). Counts how soon there is a verdict, from the end of the first and of the third iteration
 * in which the fault acts (fewer make no pattern), whether its first suspect is right by the limit, and false incidents.
 */
import { parseArgs } from "node:util";
import { drawFaults, fleetSpec } from "../../bench/live-shape.ts";
import { pick, seeded } from "../../src/base/random.ts";
import type { Suspect } from "../../src/model/verdict.ts";
import { severityAt } from "../../src/simulate/cluster/faults.ts";
import { completeSpec, type ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { rehearse } from "../../test/support/live-rehearsal.ts";
import { covers, isPlace, share } from "./cases.ts";

const { values } = parseArgs({
  options: {
    /** All jobs of this size; layouts of 32 to 512 without it. */
    gpus: { type: "string" },
    jobs: { type: "string", default: "8" },
    faults: { type: "string", default: "5" },
    healthy: { type: "string", default: "2" },
    seed: { type: "string", default: "1" },
    seconds: { type: "string", default: "3600" },
    /** Everything that is told of incidents, with seconds from the fault's first slow iteration. */
    verbose: { type: "boolean", default: false },
  },
});
const [jobs, faultsEach, healthyJobs] = [values.jobs, values.faults, values.healthy].map(Number);
const firstSeed = Number(values.seed) * 1000;
const SETTLE_S = 60;
const OVER_S = 240;
const FAULT_S = 120;
/** Slow iterations that make a pattern. */
const PATTERN = 3;
/** How soon after those the verdict has to be right. */
const LIMIT_S = 15;
const AFTER_S = 20;
const TESTS_S = 50;

interface Row {
  readonly fault: string;
  /** From the end of the first slow iteration, and of the third. */
  readonly seconds: number;
  readonly fromThird: number;
  readonly isRightAtFirst: boolean;
  /** Of what was said last, within the limit and in all. */
  readonly isRightInTime: boolean;
  readonly isRight: boolean;
  readonly isCovered: boolean;
  readonly extra: number;
}

/** With pipelines and without, and fully sharded. */
const LAYOUTS: readonly Partial<ClusterSpec>[] = [
  { gpus: 64, tp: 8, pp: 1 },
  { gpus: 32, tp: 4, pp: 2 },
  { gpus: 64, tp: 1, pp: 1, fullyShard: true, microBatches: 1, layersPerStage: 8 },
  { gpus: 128, tp: 8, pp: 4 },
  { gpus: 128, tp: 2, pp: 1 },
  { gpus: 256, tp: 4, pp: 4 },
  { gpus: 64, tp: 2, pp: 4 },
  { gpus: 512, tp: 8, pp: 2 },
];

/**
 * Sizes at which an iteration takes a sixth of a second and more: rehearsed iterations take a second whatever they compute, so
 * that a garbage collection, 10 to 30 ms, would be as long as the whole iteration of a job of one small layer.
 */
function clusterOf(seed: number): ClusterSpec {
  if (values.gpus !== undefined)
    return fleetSpec({ gpus: Number(values.gpus), agents: Number(values.gpus) / 8, seed });
  const random = seeded(seed);
  return completeSpec({
    microBatches: pick(random, [4, 8]),
    layersPerStage: 2,
    ...LAYOUTS[seed % LAYOUTS.length],
    hidden: 8192,
    sequence: pick(random, [8192, 16_384]),
    sharesByFlops: true,
    seed,
    iterations: Number.MAX_SAFE_INTEGER,
  });
}

async function faultyJob(seed: number): Promise<Row[]> {
  const spec = clusterOf(seed);
  const log = values.verbose ? { log: (line: string) => console.log(`      ${line}`) } : {};
  const rehearsal = await rehearse(spec, { relapseMs: 0, ...log });
  await rehearsal.run(SETTLE_S);
  const rows: Row[] = [];
  for (const [k, drawn] of drawFaults(spec, faultsEach!, seed).entries()) {
    const fault = `${drawn.fault}:shape=${k % 2 === seed % 2 ? "spike" : "fluctuation"}`;
    const from = rehearsal.told.length;
    const { board } = rehearsal.fleet.played;
    board.add(fault);
    const lastHealthy = rehearsal.fleet.held.last;
    /** When the iterations ended in which the fault acted. */
    const slowEnds = (): number[] => {
      const { held } = rehearsal.fleet;
      const ends: number[] = [];
      for (let i = Math.max(held.first, lastHealthy + 1); i <= held.last; i++)
        if (board.specs.some((one) => severityAt(one, i, spec.seed) > 1))
          ends.push(Math.max(...held.of(i)!.endMs));
      return ends;
    };
    let [first, third, toldMs] = [NaN, NaN, NaN];
    let printed = from;
    const print = (): void => {
      for (; values.verbose && printed < rehearsal.told.length; printed++) {
        const { id, state, ending, verdict, validation, fromIteration, summary } =
          rehearsal.told[printed]!;
        const of = verdict?.suspects[0];
        console.log(
          `    ${((rehearsal.nowMs() - first) / 1000).toFixed(1)} s, iteration ${rehearsal.fleet.held.last}: ${id} ${state} ${ending ?? ""} from ${fromIteration}, ${of?.cause} ${of?.ranks.slice(0, 4).join()} ${verdict?.confidence.toFixed(2)}, ${validation?.outcome ?? "not tested"}: ${summary}`,
        );
      }
    };
    /** The first suspect as it was at first, at the limit, and is now. */
    const suspects = new Map<"first" | "inTime" | "last", Suspect | undefined>();
    await rehearsal.run(FAULT_S, () => {
      const ends = slowEnds();
      if (Number.isNaN(first)) first = ends[0] ?? NaN;
      if (Number.isNaN(third)) third = ends[PATTERN - 1] ?? NaN;
      print();
      const told = rehearsal.told.slice(from).filter((one) => one.verdict?.suspects.length);
      const last = told.at(-1);
      const suspect = last?.verdict?.suspects[0];
      if (last && Number.isNaN(toldMs)) {
        toldMs = rehearsal.nowMs();
        suspects.set("first", suspect);
      }
      suspects.set("last", suspect);
      if (!(rehearsal.nowMs() - third > LIMIT_S * 1000)) suspects.set("inTime", suspect);
      const sinceMs = rehearsal.nowMs() - Math.max(toldMs, third);
      // Where several ranks are named, they are tested.
      const isSettled = suspect?.ranks.length === 1 || last?.validation !== undefined;
      return sinceMs > (isSettled ? AFTER_S : TESTS_S) * 1000;
    });
    if (values.verbose) {
      const { held } = rehearsal.fleet;
      const after = Array.from({ length: 40 }, (_, i) => lastHealthy + 1 + i);
      const took = after.flatMap((i) => held.of(i)?.durationMs[0]?.toFixed(0) ?? []);
      console.log(`      iterations from ${lastHealthy + 1}: ${took.join(" ")} ms`);
    }
    board.clear();
    await rehearsal.run(SETTLE_S);
    // What is slow now and then is over after a few of its usual gaps: the next fault is another story.
    await rehearsal.run(OVER_S, () => {
      print();
      const now = new Map(rehearsal.told.map((one) => [one.id, one.state]));
      return [...now.values()].every((state) => state === "resolved");
    });
    const ids = new Set(rehearsal.told.slice(from).map(({ id }) => id));
    const isRight = (suspect: Suspect | undefined): boolean =>
      isPlace(suspect, fault) && suspect?.cause === fault.split(":")[0];
    const suspect = suspects.get("last");
    const row = {
      fault,
      seconds: (toldMs - first) / 1000,
      fromThird: (toldMs - third) / 1000,
      isRightAtFirst: isRight(suspects.get("first")),
      isRightInTime: isRight(suspects.get("inTime")),
      isRight: isRight(suspect),
      isCovered: covers(suspects.get("first"), fault),
      extra: Math.max(0, ids.size - 1),
    };
    rows.push(row);
    const named = suspect
      ? `${suspect.cause} ${suspect.type} ${suspect.ranks.slice(0, 4).join()}`
      : "nobody";
    console.log(
      `  ${spec.gpus} GPUs tp ${spec.tp} pp ${spec.pp}, ${fault} (×${drawn.effect.toFixed(2)}): ${row.seconds.toFixed(1)} s, ${row.fromThird.toFixed(1)} s from the third, ${row.isRightInTime ? "right" : row.isRight ? "right too late" : named}${row.extra > 0 ? `, ${row.extra} incidents too many` : ""}`,
    );
  }
  return rows;
}

const rows: Row[] = [];
for (let k = 0; k < jobs!; k++) rows.push(...(await faultyJob(firstSeed + k)));
let falseIncidents = 0;
let [healthyS, serviceMs] = [0, 0];
for (let k = 0; k < healthyJobs!; k++) {
  const spec = clusterOf(firstSeed + 500 + k);
  const rehearsal = await rehearse(spec);
  const began = process.cpuUsage();
  const simulatedMs = rehearsal.simulated.cpuMs;
  await rehearsal.run(Number(values.seconds));
  const { user, system } = process.cpuUsage(began);
  serviceMs += (user + system) / 1000 - (rehearsal.simulated.cpuMs - simulatedMs);
  healthyS += Number(values.seconds);
  const ids = new Set(rehearsal.told.map(({ id }) => id));
  falseIncidents += ids.size;
  if (ids.size > 0)
    console.log(
      `  healthy, ${spec.gpus} GPUs: ${rehearsal.told.map(({ summary }) => summary).join(" | ")}`,
    );
}
const median = (ms: readonly number[]): string =>
  (ms.toSorted((a, b) => a - b)[ms.length >> 1] ?? NaN).toFixed(1);
const count = (is: (row: Row) => boolean): string => share(rows.filter(is).length, rows.length);
if (rows.length > 0) {
  console.log(`\nseeds from ${firstSeed}, ${jobs} jobs × ${faultsEach} spikes and fluctuations`);
  console.log(
    `right ${LIMIT_S} s after the third slow iteration: ${count((row) => row.isRightInTime)}; in the end: ${count((row) => row.isRight)}`,
  );
  console.log(
    `at first right: ${count((row) => row.isRightAtFirst)}, covered ${count((row) => row.isCovered)}; median ${median(rows.map((row) => row.seconds))} s from the first, ${median(rows.map((row) => row.fromThird))} s from the third`,
  );
  console.log(`incidents too many: ${rows.reduce((sum, row) => sum + row.extra, 0)}`);
}
console.log(
  `healthy: ${falseIncidents} incidents in ${healthyJobs} jobs of ${values.seconds} s each; the service took ${(serviceMs / healthyS / 10).toFixed(1)} % of a core, the process ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB with the simulated machines`,
);
process.exit(0);
