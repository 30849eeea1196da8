/**
 * The agents and the service against jobs that really ran, on a set clock: `npm run eval -- live-recorded FOLDER… [--log]
 * [--only NAMES]`. A folder is what `lab/live/proof.py --keep-rings` leaves: rings/ and results.json with what was injected
 * and when. For each fault: when it was told, whether the answer is right (nobody else accused), and what was told of nothing.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { recordedRings } from "../../test/support/live/recorded-rings.ts";
import { rehearseRecorded } from "../../test/support/live/ring-rehearsal.ts";
import type { Incident } from "../../src/model/incident.ts";

interface Injected {
  readonly fault: string;
  readonly onsetMs: number;
  readonly endMs: number;
  readonly truth: { readonly kind: string; readonly ranks: number[]; readonly causes: string[] };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    log: { type: "boolean", default: false },
    /** What every answer rests on. */
    explain: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    tick: { type: "string", default: "1000" },
  },
});
const TICK_MS = Number(values.tick);
/** A search that began during the fault may end a moment later. */
const AFTER_MS = 2000;

let right = 0;
let asked = 0;
let wrong = 0;
let falsely = 0;
for (const folder of positionals) {
  const { job, faults } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as {
    job: string;
    faults: Injected[];
  };
  const recorded = recordedRings(join(folder, "rings"));
  const told: { atMs: number; incident: Incident }[] = [];
  const rehearsal = await rehearseRecorded(recorded, {
    tickMs: TICK_MS,
    service: values.log
      ? { log: (line) => console.log(`    ${clock(rehearsal.nowMs())} ${line.slice(0, 400)}`) }
      : {},
  });
  let known = 0;
  await rehearsal.run((recorded.endMs - recorded.startMs) / 1000, () => {
    for (; known < rehearsal.told.length; known++)
      told.push({ atMs: rehearsal.nowMs(), incident: rehearsal.told[known]! });
    return false;
  });
  console.log(`${job}: ${((recorded.endMs - recorded.startMs) / 1000).toFixed(0)} s`);
  const mine = new Set<(typeof told)[number]>();
  for (const one of faults) {
    // Who made a job stand still is asked of its processes, which are not here.
    if (one.truth.kind === "hang" || !one.fault.includes(values.only)) continue;
    asked++;
    const during = told.filter(
      ({ atMs, incident }) =>
        atMs >= one.onsetMs && atMs <= one.endMs + AFTER_MS && incident.state !== "resolved",
    );
    for (const each of during) mine.add(each);
    const last = during.findLast(({ incident }) => incident.verdict?.suspects.length);
    const isRight = last !== undefined && isRightly(last.incident, one);
    const when = during.find(({ incident }) => isRightly(incident, one));
    if (isRight) right++;
    else if (last) wrong++;
    const answer = last?.incident.verdict?.suspects
      .map(({ ranks, cause, score }) => `${ranks.join("–")} ${cause} ${score.toFixed(2)}`)
      .join(", ");
    console.log(
      `  ${one.fault}: ${isRight ? `right after ${((when!.atMs - one.onsetMs) / 1000).toFixed(1)} s` : last ? "WRONG" : during.length > 0 ? "nobody named" : "not told"}${answer === undefined ? "" : ` (${answer}; ${last!.incident.verdict!.confidence.toFixed(2)})`}`,
    );
    if (values.explain)
      for (const { method, says, weight } of last?.incident.verdict?.findings ?? [])
        console.log(`      ${method} ${weight}: ${says.slice(0, 500)}`);
  }
  const others = new Map(
    told
      .filter((each) => !mine.has(each) && each.incident.verdict?.suspects.length)
      .filter(
        ({ incident }) =>
          !told.some((other) => mine.has(other) && other.incident.id === incident.id),
      )
      .map(({ atMs, incident }) => [incident.id, { atMs, incident }]),
  );
  for (const { atMs, incident } of others.values()) {
    falsely++;
    console.log(`  FALSE ${clock(atMs)}: ${incident.summary.slice(0, 200)}`);
  }
  await rehearsal.close();
}
console.log(`right ${right} of ${asked}, wrong ${wrong}, accused for nothing ${falsely}`);

function isRightly({ kind, verdict }: Incident, { truth }: Injected): boolean {
  const suspects = verdict?.suspects ?? [];
  return (
    kind === truth.kind &&
    suspects.length > 0 &&
    truth.causes.includes(suspects[0]!.cause) &&
    suspects.every(({ ranks }) => sorted(ranks) === sorted(truth.ranks))
  );
}

function sorted(ranks: readonly number[]): string {
  return ranks.toSorted((a, b) => a - b).join();
}

function clock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
