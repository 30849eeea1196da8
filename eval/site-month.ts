/**
 * A rehearsed month at one site: 200 incidents of 30 jobs on 12 machines, three of which break again and again. The first
 * hundred are judged by people who are wrong once in twenty; the other hundred are of jobs that nobody learnt from.
 *
 *   node --import tsx eval/site-month.ts [--first 1] [--seeds 2] [--incidents 200] [--quick]
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { UserError } from "../src/base/errors.ts";
import { pick, seeded, type Random } from "../src/base/random.ts";
import { calibrated } from "../src/live/service/site/calibrate.ts";
import { howRight, type Judged } from "../src/live/service/site/how-right.ts";
import { correctedOffenders } from "../src/live/service/site/machine-history.ts";
import { withJudged } from "../src/live/service/site/site-store.ts";
import { wilson } from "../src/maths/wilson.ts";
import { CAUSES } from "../src/model/cause.ts";
import { saidThen } from "../src/model/handling.ts";
import type { Incident } from "../src/model/incident.ts";
import { EMPTY_STORE, type LogStore } from "../src/model/log-store.ts";
import type { Verdict } from "../src/model/verdict.ts";
import { diagnose } from "../src/pipeline/diagnose.ts";
import { logKnowledge, recordOfLine } from "../src/pipeline/logs.ts";
import { FAMILIES, siteIncident, type SiteIncident } from "./site/incidents.ts";

const MISTAKES = 0.05;
const ENV = { signal: new AbortController().signal, progress: () => undefined };

/** What a service knows when an incident comes. */
interface Knowledge {
  /** Accused machines of its verdicts, one list an incident. */
  readonly accused: { readonly openedMs: number; readonly machines: readonly string[] }[];
  readonly judgements: Judged[];
  store: LogStore;
}

interface Answered {
  readonly incident: SiteIncident;
  readonly verdict: Verdict;
  readonly isRight: boolean;
}

let last: {
  readonly key: string;
  readonly known: Awaited<ReturnType<typeof logKnowledge>>;
} | null = null;
const { values } = parseArgs({
  options: {
    first: { type: "string", default: "1" },
    seeds: { type: "string", default: "2" },
    incidents: { type: "string", default: "200" },
    quick: { type: "boolean", default: false },
  },
});
const INCIDENTS = Number(values.incidents);
const FIRST = Number(values.first);
const LAST = FIRST + (values.quick ? 1 : Number(values.seeds)) - 1;
const arms = new Map<string, Answered[]>([
  ["nothing learnt", []],
  ["own verdicts as history", []],
  ["feedback", []],
]);
const began = process.cpuUsage();
for (let seed = FIRST; seed <= LAST; seed++) await month(seed);
print();

async function month(seed: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "faultline-month-"));
  const random = seeded(seed + 7_000_000);
  const none = nothing();
  const [own, taught] = [nothing(), nothing()];
  try {
    for (let number = 0; number < INCIDENTS; number++) {
      const incident = siteIncident(seed, number, INCIDENTS, root);
      if (number < INCIDENTS / 2) {
        remember(own, incident, await answer(incident, own));
        await teach(taught, incident, random);
      } else
        for (const [name, known] of [
          ["nothing learnt", none],
          ["own verdicts as history", own],
          ["feedback", taught],
        ] as const) {
          const verdict = await answer(incident, known);
          arms.get(name)!.push({ incident, verdict, isRight: isRight(incident, verdict) });
        }
      rmSync(incident.folder, { recursive: true });
    }
  } finally {
    rmSync(root, { recursive: true });
  }
}

function nothing(): Knowledge {
  return { accused: [], judgements: [], store: EMPTY_STORE };
}

/** As the service does it: history in job.json, what the site knows of logs, the confidence corrected. */
async function answer(incident: SiteIncident, known: Knowledge): Promise<Verdict> {
  const { store } = known;
  const { folder, machines } = incident;
  const counts = historyOf(known);
  const local = [...machines].flatMap(([name, machine]) =>
    counts.has(machine) ? [[name, counts.get(machine)!] as const] : [],
  );
  const file = join(folder, "job.json");
  const job = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as object) : {};
  const incidents = counts.size === 0 ? {} : { incidents: Object.fromEntries(local) };
  writeFileSync(file, JSON.stringify({ ...job, incidents: undefined, ...incidents }));
  const voted = withJudged(store, known.judgements);
  const knowledge = incident.line === null ? {} : { logKnowledge: await knowledgeOf(voted) };
  const options = { paths: [folder], records: store.records, ...knowledge };
  const { verdict } = await diagnose(options, ENV);
  return calibrated(verdict, known.judgements);
}

async function knowledgeOf(store: LogStore): ReturnType<typeof logKnowledge> {
  const key = JSON.stringify([store.records.map(({ id }) => id), store.votes]);
  if (last?.key !== key) last = { key, known: await logKnowledge({ store }, ENV) };
  return last.known;
}

function historyOf({ accused, judgements }: Knowledge): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { machines } of accused)
    for (const machine of machines) counts.set(machine, (counts.get(machine) ?? 0) + 1);
  const offenders = [...counts].map(([machine, incidents]) => ({
    machine,
    incidents,
    jobs: 1,
    lastMs: 0,
    causes: [],
  }));
  return new Map(
    correctedOffenders(offenders, judgements, 0).map((one) => [one.machine, one.incidents]),
  );
}

function remember(
  known: Knowledge,
  { number, machines }: SiteIncident,
  verdict: Verdict,
): string[] {
  const names = verdict.suspects.flatMap(({ machine }) =>
    machine === null ? [] : [machines.get(machine) ?? machine],
  );
  const accused = [...new Set(names)];
  known.accused.push({ openedMs: number, machines: accused });
  return accused;
}

async function teach(known: Knowledge, incident: SiteIncident, random: Random): Promise<void> {
  const verdict = await answer(incident, known);
  const machines = remember(known, incident, verdict);
  const isMistaken = random() < MISTAKES;
  const said = isRight(incident, verdict) !== isMistaken;
  const { truth, number, job } = incident;
  const machine = isMistaken ? pick(random, [...incident.machines.values()]) : truth.machine;
  const cause = isMistaken ? pick(random, CAUSES) : truth.cause;
  const record = { job, openedMs: number, kind: verdict.kind, verdict, machines };
  known.judgements.push({
    incident: String(number),
    who: "people",
    atMs: number,
    isRight: said,
    machine: said ? null : machine,
    cause: said ? null : cause,
    jobs: null,
    said: saidThen(record as unknown as Incident),
  });
  if (said || incident.family !== "site's line") return;
  const title = incident.line!.split(":")[0]!;
  if (known.store.records.some((one) => one.title === title)) return;
  try {
    const made = recordOfLine(
      incident.line!,
      { title, cause, action: "see the runbook" },
      known.store,
    );
    known.store = { ...known.store, records: [...known.store.records, made] };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
  }
}

/** The machine where the fault is of one, else the cause. */
function isRight({ truth, machines }: SiteIncident, { suspects: [first] }: Verdict): boolean {
  if (!first) return false;
  if (truth.machine === null) return first.cause === truth.cause;
  return first.machine !== null && machines.get(first.machine) === truth.machine;
}

function print(): void {
  const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
  const rate = (list: readonly Answered[]): string => {
    if (list.length === 0) return "–";
    const right = list.filter((one) => one.isRight).length;
    const [low, high] = wilson(right, list.length);
    return `${right} of ${list.length}, ${percent(right / list.length)} (${percent(low)} to ${percent(high)})`;
  };
  console.log(
    `seeds ${FIRST} to ${LAST}; ${INCIDENTS / 2} judged incidents each, ${INCIDENTS / 2} of other jobs asked\n`,
  );
  console.log(
    "| | first suspect right, of all | right, of those with a suspect | Brier | calibration error |",
  );
  console.log("|---|---|---|---|---|");
  for (const [name, list] of arms) {
    const named = list.filter(({ verdict }) => verdict.suspects.length > 0);
    const brier =
      named.reduce(
        (sum, { verdict, isRight: yes }) => sum + (verdict.confidence - Number(yes)) ** 2,
        0,
      ) / named.length;
    const judged = named.map(({ verdict, isRight: yes }) => {
      const record = { job: "", openedMs: 0, kind: verdict.kind, verdict, machines: [] };
      const said = saidThen(record as unknown as Incident);
      return { isRight: yes, machine: null, cause: null, jobs: null, said };
    });
    const { calibrationError } = howRight(judged).all;
    console.log(
      `| ${name} | ${rate(list)} | ${rate(named)} | ${brier.toFixed(3)} | ${calibrationError.toFixed(3)} |`,
    );
  }
  const [none, , taught] = [...arms.values()] as [Answered[], Answered[], Answered[]];
  console.log("\n| incidents | nothing learnt | own verdicts as history | feedback |");
  console.log("|---|---|---|---|");
  for (const family of FAMILIES)
    console.log(
      `| ${family} | ${[...arms.values()].map((list) => rate(list.filter(({ incident }) => incident.family === family))).join(" | ")} |`,
    );
  const gained = taught.filter((one, i) => one.isRight && !none[i]!.isRight).length;
  const lost = taught.filter((one, i) => !one.isRight && none[i]!.isRight).length;
  const { user, system } = process.cpuUsage(began);
  console.log(
    `\nFeedback made ${gained} answers right that were wrong, and ${lost} wrong that were right. ${((user + system) / 1e6).toFixed(0)} s of processor time.`,
  );
}
