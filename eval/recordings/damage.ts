/**
 * Recorded jobs with part of the evidence gone, judged once more: `npm run eval -- damage [FOLDER…]`. A bystander's dump missing, four
 * of eight, the last 16 iterations alone, clocks 50 ms apart, the culprit's dump missing: who is named, and how surely.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { accountOf } from "../../src/methods/slow/account-of-operators.ts";
import { judge } from "../../src/methods/slow/posterior.ts";
import type { RankOperators } from "../../src/model/rank-operators.ts";
import type { Job } from "../../src/model/job.ts";
import { readJob } from "../../src/pipeline/diagnose.ts";
import { unpacked } from "../unpacked.ts";
import { recordingsIn } from "./archives.ts";
import { SURE } from "./tally.ts";
import { type Truth, truthIn } from "./truth.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const PLACES = [
  "../shared/recordings",
  "../shared/recordings/frameworks",
  "fixtures/recordings",
  "fixtures/families",
];
const ENV = { signal: new AbortController().signal, progress: () => undefined };
const LAST = 16;
const APART_NS = 50_000_000n;

type Damage = (all: readonly RankOperators[], guilty: readonly number[]) => RankOperators[];

const DAMAGES: Readonly<Record<string, Damage>> = {
  none: (all) => [...all],
  "a bystander's dump missing": (all, guilty) => {
    const bystander = all.findLast(({ rank }) => !guilty.includes(rank));
    return all.filter((one) => one !== bystander);
  },
  "four of eight": (all, guilty) => {
    const others = all.filter(({ rank }) => !guilty.includes(rank));
    const kept = others.filter((_, i) => i % 2 === 0);
    const suspects = all.filter(({ rank }) => guilty.includes(rank));
    return [...suspects, ...kept].slice(0, all.length >> 1).sort((a, b) => a.rank - b.rank);
  },
  "the last 16 iterations alone": (all) => all.map(lastOnes),
  "clocks 50 ms apart": (all) =>
    all.map((one, i) => ({ ...one, epochNs: one.epochNs + (i % 2 === 1 ? APART_NS : 0n) })),
  "the culprit's dump missing": (all, guilty) => all.filter(({ rank }) => !guilty.includes(rank)),
};

function lastOnes(one: RankOperators): RankOperators {
  const { iteration, from, to, durationMs, startMs } = one;
  return {
    ...one,
    iteration: iteration.slice(-LAST),
    from: from.slice(-LAST),
    to: to.slice(-LAST),
    durationMs: durationMs.slice(-LAST),
    startMs: startMs.slice(-LAST),
  };
}

interface Count {
  asked: number;
  right: number;
  healthy: number;
  accused: number;
  other: number;
  sureAndWrong: number;
}

const counts = new Map(
  Object.keys(DAMAGES).map((name): [string, Count] => [
    name,
    { asked: 0, right: 0, healthy: 0, accused: 0, other: 0, sureAndWrong: 0 },
  ]),
);
const given = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const places =
  given.length > 0 ? given : PLACES.map((place) => join(root, place)).filter((p) => existsSync(p));
for (const { name, path } of recordingsIn(places)) {
  const use = (folder: string): Promise<void> => ask(name, folder);
  await (existsSync(join(path, "truth.json")) ? use(path) : unpacked(path, use));
}
console.log(
  "\n| damage | slow jobs | right ranks | somebody else | healthy | accused | wrong at 0.8 or above |\n|---|---|---|---|---|---|---|",
);
for (const [name, { asked, right, other, healthy, accused, sureAndWrong }] of counts)
  console.log(
    `| ${name} | ${asked} | ${right} | ${other} | ${healthy} | ${accused} | ${sureAndWrong} |`,
  );

async function ask(name: string, folder: string): Promise<void> {
  const truth = truthIn(folder);
  if (!truth || (truth.kind !== "healthy" && truth.kind !== "fail-slow")) return;
  if (truth.kind === "fail-slow" && truth.ranks.length === 0) return;
  const dumps = readdirSync(folder).filter((file) => /^(fr|dump|nccl_trace_rank)_/.test(file));
  if (dumps.length < 4) return;
  const { job } = await readJob({ paths: dumps.map((file) => join(folder, file)) }, ENV);
  const all = job.rankOperators.ranks.flatMap((rank) => job.rankOperators.fetch(rank) ?? []);
  for (const [damage, apply] of Object.entries(DAMAGES)) {
    if (damage.startsWith("the culprit") && truth.kind === "healthy") continue;
    count(name, damage, job, apply(all, truth.ranks), truth);
  }
}

function count(name: string, damage: string, job: Job, left: RankOperators[], truth: Truth): void {
  const account = left.length > 1 ? accountOf(left, job.groups) : null;
  if (!account) return;
  const one = counts.get(damage)!;
  const where = account.ranks.map((rank) => ({
    machine: job.ranks.get(rank)?.machine ?? null,
    leaf: null,
  }));
  const { healthy, hypotheses } = judge(account, where, job.worldSize - account.ranks.length);
  const [best] = hypotheses;
  const isAccusing = best && best.probability > healthy && best.places.length > 0;
  const named = isAccusing ? best.places.map((place) => account.ranks[place]!) : [];
  const isSure = isAccusing === true && best.probability >= SURE;
  const isRight = named.join() === truth.ranks.join();
  if (truth.kind === "healthy") {
    one.healthy++;
    if (named.length > 0) one.accused++;
  } else {
    one.asked++;
    if (isRight) one.right++;
    else if (named.length > 0) one.other++;
  }
  if (isSure && !isRight) {
    one.sureAndWrong++;
    console.log(
      `${damage}: ${name}: truth ${truth.ranks.join() || "nobody"}, said ${best.kind} ${named.join()} ${best.probability.toFixed(2)}`,
    );
  }
}
