/**
 * The agents and the service against jobs that really ran, on a set clock: `npm run eval -- live-recorded FOLDER… [--log]
 * [--only NAMES]`. A folder is what `lab/live/proof.py --keep-rings` leaves: rings/ and results.json with what was injected
 * and when. For each fault: when it was told, whether the answer is right (nobody else accused), open (the right ranks, and
 * the true cause is one of two) or wrong (somebody else, or another cause); and who was accused in the healthy stretches.
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
/** A verdict that was made during the fault may be told a moment later. */
const AFTER_MS = 2000;
/** From this confidence on people act. */
const SURE = 0.8;

interface Told {
  readonly atMs: number;
  readonly incident: Incident;
}

type Outcome = "right" | "open" | "wrong" | "nobody named" | "not told";

const outcomes = new Map<Outcome, number>();
let asked = 0;
let sureAndWrong = 0;
let falsely = 0;
for (const folder of positionals) {
  const { job, faults } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8")) as {
    job: string;
    faults: Injected[];
  };
  const recorded = recordedRings(join(folder, "rings"));
  const told: Told[] = [];
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
  const mine = new Set<string>();
  for (const one of faults) {
    // Who made a job stand still is asked of its processes, which are not here.
    if (one.truth.kind === "hang" || !one.fault.includes(values.only)) continue;
    asked++;
    const own = duringFault(told, one);
    for (const id of own.keys()) mine.add(id);
    const outcome = outcomeOf([...own.values()].flat(), one);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if ([...own.values()].some((records) => records.some((each) => isSurelyWrong(each, one))))
      sureAndWrong++;
    console.log(`  ${one.fault}: ${outcome}${wordsOf(told, own, one)}`);
    if (values.explain)
      for (const { method, says, weight } of lastAccusing(own)?.verdict?.findings ?? [])
        console.log(`      ${method} ${weight}: ${says.slice(0, 500)}`);
  }
  const others = new Map(
    told
      .filter(({ incident: { id, verdict } }) => !mine.has(id) && verdict?.suspects.length)
      .map((each) => [each.incident.id, each]),
  );
  for (const { atMs, incident } of others.values()) {
    falsely++;
    console.log(`  ACCUSED FOR NOTHING ${clock(atMs)}: ${incident.summary.slice(0, 200)}`);
  }
  await rehearsal.close();
}
const count = (outcome: Outcome): number => outcomes.get(outcome) ?? 0;
console.log(
  `right ${count("right")} of ${asked}, open ${count("open")}, wrong ${count("wrong")}, sure and wrong ${sureAndWrong}, accused for nothing ${falsely}`,
);

/** Records of incidents that were first told during the fault. */
function duringFault(told: readonly Told[], { onsetMs, endMs }: Injected): Map<string, Told[]> {
  const own = new Map<string, Told[]>();
  for (const each of told) {
    const { id } = each.incident;
    const isIn = each.atMs >= onsetMs && each.atMs <= endMs + AFTER_MS;
    const isFirst = !told.some((other) => other.incident.id === id && other.atMs < onsetMs);
    const isAgain = each.incident.state === "relapsed" || own.has(id);
    if (isIn && (isFirst || isAgain)) own.set(id, [...(own.get(id) ?? []), each]);
  }
  return own;
}

/** By the last word on each, without those that were withdrawn. */
function outcomeOf(told: readonly Told[], injected: Injected): Outcome {
  const last = new Map(told.map(({ incident }) => [incident.id, incident]));
  const standing = [...last.values()].filter(({ ending }) => ending !== "withdrawn");
  const accusing = standing.filter(({ verdict }) => verdict?.suspects.length);
  if (accusing.length === 0) return standing.length > 0 ? "nobody named" : "not told";
  const all = accusing.map((incident) => answerOf(incident, injected));
  return all.includes("wrong") ? "wrong" : all.includes("open") ? "open" : "right";
}

function answerOf({ kind, verdict }: Incident, { truth }: Injected): "right" | "open" | "wrong" {
  const suspects = verdict?.suspects ?? [];
  const areRanks = suspects.every(({ ranks }) => sorted(ranks) === sorted(truth.ranks));
  if (kind !== truth.kind || !areRanks) return "wrong";
  const are = suspects.map(({ cause }) => truth.causes.includes(cause));
  return !are.includes(true) ? "wrong" : are.includes(false) ? "open" : "right";
}

function isSurelyWrong({ incident }: Told, injected: Injected): boolean {
  const { verdict, state } = incident;
  if (!verdict?.suspects.length || state === "resolved") return false;
  const answer = answerOf(incident, injected);
  const isOneCause = (verdict.suspects[0]?.score ?? 0) >= SURE;
  return verdict.confidence >= SURE && (answer === "wrong" || (answer === "open" && isOneCause));
}

function lastAccusing(own: ReadonlyMap<string, readonly Told[]>): Incident | undefined {
  return [...own.values()]
    .flat()
    .findLast(
      ({ incident: { verdict, state } }) => state !== "resolved" && verdict?.suspects.length,
    )?.incident;
}

/** ", named after 1.8 s, over after 1.6 s (3 gpu-slow 0.93; 0.93)" */
function wordsOf(
  told: readonly Told[],
  own: ReadonlyMap<string, readonly Told[]>,
  { onsetMs, endMs }: Injected,
): string {
  const first = [...own.values()].flat().find(({ incident }) => incident.verdict?.suspects.length);
  const last = lastAccusing(own);
  if (!first || !last) return "";
  const over = told.find(({ incident: { id, state } }) => id === last.id && state === "resolved");
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const ended = over ? `, over after ${seconds(over.atMs - endMs)}` : ", not over";
  const { suspects, confidence } = last.verdict!;
  const who = suspects
    .map(({ ranks, cause, score }) => `${ranks.join("–")} ${cause} ${score.toFixed(2)}`)
    .join(", ");
  return `, named after ${seconds(first.atMs - onsetMs)}${ended} (${who}; ${confidence.toFixed(2)})`;
}

function sorted(ranks: readonly number[]): string {
  return ranks.toSorted((a, b) => a - b).join();
}

function clock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
