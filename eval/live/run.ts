/**
 * The live service against simulated fleets on a set clock, no sockets: `npm run eval -- live [--quick] [--jobs N]
 * [--faults N] [--seed S] [--large]`. Jobs of 32 to 1,024 GPUs in several layouts, each with faults one after the other; and
 * healthy jobs for an hour. Counts how soon there is a verdict, whether its first suspect is right, and false incidents.
 */
import { parseArgs } from "node:util";
import { drawFaults, fleetSpec } from "../../bench/live-shape.ts";
import { rehearse } from "../../test/support/live-rehearsal.ts";
import { covers, isPlace, share, specOf } from "./cases.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    jobs: { type: "string" },
    faults: { type: "string" },
    healthy: { type: "string" },
    /** One healthy job of 10,000 GPUs for an hour instead of the others. */
    large: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
  },
});
const jobs = values.large ? 0 : Number(values.jobs ?? (values.quick ? 4 : 24));
const faultsEach = Number(values.faults ?? (values.quick ? 3 : 5));
const healthyJobs = values.large ? 1 : Number(values.healthy ?? (values.quick ? 2 : 12));
const firstSeed = Number(values.seed);
const HEALTHY_S = 3600;
const SETTLE_S = 45;
const FAULT_S = 60;

interface Row {
  readonly seconds: number;
  readonly place: boolean;
  readonly covered: boolean;
  readonly cause: boolean;
  readonly extra: number;
}

async function faultyJob(seed: number): Promise<Row[]> {
  const spec = specOf(seed);
  const rehearsal = await rehearse(spec, { relapseMs: 0 });
  await rehearsal.run(SETTLE_S);
  const rows: Row[] = [];
  for (const { fault, effect } of drawFaults(spec, faultsEach, seed)) {
    const from = rehearsal.told.length;
    const { board } = rehearsal.fleet.played;
    board.add(fault);
    let firstMs = NaN;
    let isTold = false;
    await rehearsal.run(FAULT_S, () => {
      const onset = board.faults.at(-1)?.firstEndMs ?? null;
      const verdict = rehearsal.told.slice(from).find((one) => one.verdict?.suspects.length);
      if (!isTold && verdict && onset !== null) {
        isTold = true;
        firstMs = rehearsal.nowMs() - onset;
      }
      return isTold && rehearsal.nowMs() - onset! > 20_000;
    });
    const told = rehearsal.told.slice(from);
    const [first] = told.filter((one) => one.verdict?.suspects.length);
    const suspect = first?.verdict?.suspects[0];
    board.clear();
    await rehearsal.run(SETTLE_S);
    const ids = new Set(rehearsal.told.slice(from).map(({ id }) => id));
    const row = {
      seconds: isTold ? firstMs / 1000 : Infinity,
      place: isPlace(suspect, fault),
      covered: covers(suspect, fault),
      cause: suspect?.cause === fault.split(":")[0],
      extra: Math.max(0, ids.size - 1),
    };
    rows.push(row);
    const verdict = suspect
      ? `${suspect.cause} ${suspect.type} ${suspect.ranks.slice(0, 4).join()}`
      : "nobody";
    console.log(
      `  ${spec.gpus} GPUs tp ${spec.tp} pp ${spec.pp}, ${fault} (×${effect.toFixed(2)}): ${row.seconds.toFixed(1)} s, ${row.place && row.cause ? "right" : verdict}${row.extra > 0 ? `, ${row.extra} incidents too many` : ""}`,
    );
  }
  return rows;
}

const rows: Row[] = [];
for (let k = 0; k < jobs; k++) rows.push(...(await faultyJob(firstSeed * 1000 + k)));
let falseIncidents = 0;
for (let k = 0; k < healthyJobs; k++) {
  const seed = firstSeed * 1000 + 500 + k;
  const spec = values.large ? fleetSpec({ gpus: 10_000, agents: 1250, seed }) : specOf(seed);
  const rehearsal = await rehearse(spec);
  await rehearsal.run(HEALTHY_S);
  const ids = new Set(rehearsal.told.map(({ id }) => id));
  falseIncidents += ids.size;
  if (ids.size > 0)
    console.log(
      `  healthy, ${spec.gpus} GPUs, seed ${spec.seed}: ${rehearsal.told
        .map(({ summary }) => summary)
        .join(" | ")
        .slice(0, 400)}`,
    );
}
const seconds = rows.map((row) => row.seconds).toSorted((a, b) => a - b);
const count = (is: (row: Row) => boolean): string => share(rows.filter(is).length, rows.length);
console.log(
  `\nseeds from ${firstSeed * 1000}, ${jobs} jobs × ${faultsEach} faults (slow-downs of 1.12 to 4 times)`,
);
console.log(
  `verdict within 10 s of the first slow iteration's end: ${count((row) => row.seconds <= 10)}`,
);
console.log(`median ${seconds[seconds.length >> 1]?.toFixed(1)} s`);
console.log(
  `first suspect: place ${count((row) => row.place)}, place and cause ${count((row) => row.place && row.cause)}, covered ${count((row) => row.covered)}`,
);
console.log(`incidents too many: ${rows.reduce((sum, row) => sum + row.extra, 0)}`);
console.log(`healthy: ${falseIncidents} incidents in ${healthyJobs} jobs of an hour each`);
process.exit(0);
