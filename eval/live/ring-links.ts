/**
 * Slow links of rings, which no operator tells apart, and what the service's own tests make of them: `npm run eval --
 * ring-links [--gpus N] [--jobs N] [--faults N] [--seed S]`. Counts the first verdict and the one after the tests.
 */
import { parseArgs } from "node:util";
import { fleetSpec } from "../../bench/live-shape.ts";
import { randomInt, seeded } from "../../src/base/random.ts";
import { median } from "../../src/maths/robust.ts";
import { quietIterationNs } from "../../src/simulate/cluster/costs.ts";
import { parseFault } from "../../src/simulate/cluster/fault-spec.ts";
import type { ClusterSpec } from "../../src/simulate/cluster/spec.ts";
import { rehearse } from "../../test/support/live-rehearsal.ts";
import type { IterationBuffer } from "./fleet/iteration-buffer.ts";
import { covers, isPlace, share, specOf } from "./cases.ts";

const { values } = parseArgs({
  options: {
    gpus: { type: "string" },
    jobs: { type: "string", default: "4" },
    faults: { type: "string", default: "5" },
    seed: { type: "string", default: "1" },
  },
});
const firstSeed = Number(values.seed) * 1000;
const SETTLE_S = 45;
const FAULT_S = 45;
const TRIES = 100;
const LEAST_EFFECT = 1.22;
/** What noise leaves of it may be less than what counts as slow (Holmes §3.1). */
const SLOW = 1.1;

/** Neighbours in a ring of gradients. */
function drawLinks(spec: ClusterSpec, count: number, seed: number): string[] {
  const random = seeded(seed);
  const lanes = spec.gpus / spec.pp;
  const healthyNs = quietIterationNs(spec, []);
  return Array.from({ length: count }, () => {
    for (let tries = 0; tries < TRIES; tries++) {
      const rank = randomInt(random, spec.gpus);
      const other = Math.floor(rank / lanes) * lanes + ((rank + spec.tp) % lanes);
      const fault = `network-slow:link=${rank}-${other}:severity=${(6 + 10 * random()).toFixed(2)}`;
      if (quietIterationNs(spec, [parseFault(fault)]) / healthyNs >= LEAST_EFFECT) return fault;
    }
    return null;
  }).filter((fault) => fault !== null);
}

const COMPARED = 20;

function typicalMs(held: IterationBuffer, from: number, to: number): number {
  const ms: number[] = [];
  for (let i = from; i <= to; i++) ms.push(median(held.of(i)!.durationMs));
  return median(ms);
}

const rows: {
  first: boolean;
  covered: boolean;
  tested: boolean;
  after: boolean;
  tookMs: number;
  /** How much longer iterations took. */
  ratio: number;
}[] = [];
for (let k = 0; k < Number(values.jobs); k++) {
  const seed = firstSeed + k;
  const gpus = Number(values.gpus);
  const spec = gpus > 0 ? fleetSpec({ gpus, agents: gpus / 8, seed }) : specOf(seed);
  const rehearsal = await rehearse(spec, { relapseMs: 0 });
  await rehearsal.run(SETTLE_S);
  for (const fault of drawLinks(spec, Number(values.faults), seed)) {
    const from = rehearsal.told.length;
    const { held } = rehearsal.fleet;
    const healthyMs = typicalMs(held, held.last - COMPARED + 1, held.last);
    const firstSlow = held.last + 2;
    rehearsal.fleet.played.board.add(fault);
    await rehearsal.run(FAULT_S, () =>
      rehearsal.told.slice(from).some(({ validation }) => validation !== undefined),
    );
    const told = rehearsal.told.slice(from).filter((one) => one.verdict?.suspects.length);
    const [first, last] = [told[0]?.verdict?.suspects[0], told.at(-1)?.verdict?.suspects[0]];
    const validation = told.at(-1)?.validation;
    const ratio = typicalMs(held, Math.max(held.first, firstSlow), held.last) / healthyMs;
    rehearsal.fleet.played.board.clear();
    await rehearsal.run(SETTLE_S);
    const row = {
      first: isPlace(first, fault),
      covered: covers(first, fault),
      tested: validation !== undefined,
      after: isPlace(last, fault),
      tookMs: validation?.tookMs ?? NaN,
      ratio,
    };
    rows.push(row);
    console.log(
      `  ${spec.gpus} GPUs tp ${spec.tp} pp ${spec.pp}, ${fault} (×${ratio.toFixed(2)}): at first ${first ? `${first.type} ${first.ranks.slice(0, 4).join()}` : "nobody"}, then ${row.after ? "right" : last ? `${last.type} ${last.ranks.slice(0, 4).join()}` : "nobody"}${validation ? `, ${validation.ranks.length} ranks tested in ${row.tookMs.toFixed(0)} ms: ${validation.outcome.slice(0, 120)}` : ", no tests"}`,
    );
  }
}
const slow = rows.filter(({ ratio }) => ratio >= SLOW);
const count = (is: (row: (typeof rows)[number]) => boolean): string =>
  share(slow.filter(is).length, slow.length);
const faster = rows.filter((row) => row.ratio < SLOW);
console.log(
  `\n${rows.length} ring links, ${faster.length} of them with iterations less than ${SLOW} times as long (${faster.filter((row) => row.after).length} named); of the other ${slow.length}: right at first ${count((row) => row.first)}, covered ${count((row) => row.covered)}, tested ${count((row) => row.tested)}, right after the tests ${count((row) => row.after)}`,
);
process.exit(0);
