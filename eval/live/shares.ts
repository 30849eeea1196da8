/**
 * The judge of running jobs against jobs that really ran, without the service: `npm run eval -- live-shares FOLDER… [--log]
 * [--calm SECONDS]`. A folder is what `lab/live/proof.py --keep-rings` leaves. The agent's own code makes shares of the rings as they
 * are written again, and the judge is asked half second by half second, told nothing else. For each fault: when its rank was named,
 * why, and when that was over; what was named of nothing; and what is named in healthy stretches that are shuffled.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pick, seeded } from "../../src/base/random.ts";
import type { LiveCulprit, LiveJudgement } from "../../src/model/live-judgement.ts";
import {
  type Block,
  type JudgedJob,
  OnlineJudge,
} from "../../src/methods/slow/online/online-judge.ts";
import { blocksFrom, jobFrom, playShares, type TimedBlock } from "./played-shares.ts";

interface Injected {
  readonly fault: string;
  readonly onsetMs: number;
  readonly endMs: number;
  readonly truth: { readonly kind: string; readonly ranks: number[]; readonly causes: string[] };
}

/** Somebody who was named. */
interface Named {
  readonly atMs: number;
  culprit: LiveCulprit;
  endedMs: number;
  why: string;
}

/** What is named so long after a fault has ended may still be of it. */
const AFTER_MS = 2000;
/** Healthy stretches that are shuffled: so long, in blocks, and so far from any fault. */
const STRETCH_BLOCKS = 10;
const APART_MS = 1500;
/** At a job's start. */
const WARMING_BLOCKS = 24;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    log: { type: "boolean", default: false },
    tick: { type: "string", default: "1000" },
    calm: { type: "string", default: "600" },
  },
});

const score = { right: 0, open: 0, wrong: 0, sure: 0, falsely: 0, asked: 0, calmS: 0 };
const delays: number[] = [];
const ends: number[] = [];
let judgeMs = 0;
let steps = 0;

for (const folder of positionals) {
  const results = readFileSync(join(folder, "results.json"), "utf8");
  const { job: name, faults } = JSON.parse(results) as { job: string; faults: Injected[] };
  const played = playShares(folder, Number(values.tick));
  const { job } = jobFrom(played);
  const blocks = blocksFrom(played);
  console.log(`${name}: ${((played.endMs - played.startMs) / 1000).toFixed(0)} s`);
  const named = judge(job, blocks, played.startMs);
  const mine = new Set<Named>();
  for (const fault of faults) {
    const during = named.filter(
      ({ atMs }) => atMs > fault.onsetMs && atMs < fault.endMs + AFTER_MS,
    );
    for (const one of during) mine.add(one);
    if (fault.truth.kind === "hang") tellFalse(during, `in ${fault.fault}`, fault.onsetMs);
    else tell(fault, during);
  }
  tellFalse(
    named.filter((one) => !mine.has(one)),
    "in calm",
    played.startMs,
  );
  const isCalm = ({ startMs, lengthMs, ended }: Block): boolean =>
    ended.every((many) => many > 0) &&
    faults.every(
      ({ onsetMs, endMs }) =>
        startMs + lengthMs + APART_MS <= onsetMs || startMs >= endMs + APART_MS,
    );
  const calm = blocks.map(({ block }, k) => k >= WARMING_BLOCKS && isCalm(block));
  const shuffled = shuffle(blocks, calm, Number(values.calm) * 1000);
  tellFalse(judge(job, shuffled, 0), "in shuffled calm", 0);
}
const { right, open, wrong, sure, falsely, asked, calmS } = score;
console.log(
  `named after ${quantile(delays, 0.5)} s (95 %: ${quantile(delays, 0.95)}), over after ${quantile(ends, 0.5)} s (at most ${quantile(ends, 1)}); shuffled calm ${calmS.toFixed(0)} s; ${(judgeMs / Math.max(1, steps)).toFixed(2)} ms a block`,
);
console.log(
  `right ${right} of ${asked}, open ${open}, wrong ${wrong}, sure and wrong ${sure}, accused for nothing ${falsely}`,
);

/** Everybody who is named. */
function judge(job: JudgedJob, blocks: readonly TimedBlock[], zeroMs: number): Named[] {
  const online = new OnlineJudge(job);
  const named = new Map<number, Named>();
  for (const { atMs, block } of blocks) {
    const began = performance.now();
    const judgement = online.step(block);
    judgeMs += performance.now() - began;
    steps++;
    follow(named, judgement, atMs);
    if (values.log) log(judgement, (atMs - zeroMs) / 1000);
  }
  return [...named.values()];
}

function follow(named: Map<number, Named>, { culprits, ended }: LiveJudgement, atMs: number): void {
  for (const culprit of culprits) {
    const known = named.get(culprit.id);
    if (known) known.culprit = culprit;
    else named.set(culprit.id, { atMs, culprit, endedMs: NaN, why: "" });
  }
  for (const { id, why } of ended) Object.assign(named.get(id)!, { endedMs: atMs, why });
}

function tell(fault: Injected, during: readonly Named[]): void {
  score.asked++;
  const isIt = ({ culprit: { type, ranks } }: Named): boolean =>
    type === "rank" && ranks.join() === fault.truth.ranks.join();
  const own = during.find(isIt);
  const others = during.filter((one) => !isIt(one));
  const line = (words: string): void => console.log(`  ${fault.fault}: ${words}`);
  for (const { culprit, atMs } of others)
    line(`WRONG after ${seconds(atMs - fault.onsetMs)}: ${said(culprit)}`);
  if (!own) line("nobody named");
  const isSure = others.some(({ culprit }) => culprit.probability >= 0.8);
  if (others.length > 0 || !own) {
    if (others.length > 0) score.wrong++;
    if (isSure) score.sure++;
    return;
  }
  const { culprit, atMs, endedMs } = own;
  const { cause, causeProbability } = culprit;
  const isRight = cause !== null && fault.truth.causes.includes(cause);
  if (cause === null) score.open++;
  else if (isRight) score.right++;
  else score.wrong++;
  if (cause !== null && !isRight && causeProbability >= 0.8) score.sure++;
  delays.push((atMs - fault.onsetMs) / 1000);
  if (endedMs > fault.endMs) ends.push((endedMs - fault.endMs) / 1000);
  const how = isRight ? "right" : cause === null ? "its cause open" : "WRONG CAUSE";
  const again = during.length > 1 ? `, ${during.length} times` : "";
  line(
    `${how} after ${seconds(atMs - fault.onsetMs)}${again} (${said(culprit)}), over after ${seconds(endedMs - fault.endMs)}`,
  );
}

function tellFalse(named: readonly Named[], where: string, zeroMs: number): void {
  score.falsely += named.length;
  for (const { culprit, atMs } of named)
    console.log(`  FALSE ${where} after ${seconds(atMs - zeroMs)}: ${said(culprit)}`);
}

/** Healthy stretches of the recording in any order, as long as wanted. */
function shuffle(
  blocks: readonly TimedBlock[],
  calm: readonly boolean[],
  ms: number,
): TimedBlock[] {
  const isStart = (k: number): boolean =>
    Array.from({ length: STRETCH_BLOCKS }, (_, i) => calm[k + i]).every((one) => one === true);
  const starts = [...calm.keys()].filter(isStart);
  const random = seeded(1);
  const shuffled: TimedBlock[] = [];
  let atMs = 0;
  while (starts.length > 0 && atMs < ms) {
    const from = pick(random, starts);
    for (const { block } of blocks.slice(from, from + STRETCH_BLOCKS)) {
      shuffled.push({ atMs: atMs + block.lengthMs, block: { ...block, startMs: atMs } });
      atMs += block.lengthMs;
    }
  }
  score.calmS += atMs / 1000;
  return shuffled;
}

function said({ type, ranks, cause, causeProbability, probability, shape }: LiveCulprit): string {
  const why = `${cause ?? "its GPU or its CPU"} ${causeProbability.toFixed(2)}`;
  return `${type} ${ranks.join()} ${probability.toFixed(3)}, ${why}${shape === "lasting" ? "" : ", now and then"}`;
}

function log({ state, culprits, ended }: LiveJudgement, atS: number): void {
  const who = culprits.map((one) => said(one)).join("; ");
  const over = ended.map(({ id, why }) => ` (${id} ${why})`).join("");
  console.log(`    ${atS.toFixed(1)} ${state} ${who}${over}`);
}

function seconds(ms: number): string {
  return Number.isNaN(ms) ? "–" : `${(ms / 1000).toFixed(1)} s`;
}

function quantile(of: readonly number[], part: number): string {
  const sorted = of.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]?.toFixed(1) ?? "–";
}
